package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
)

// requests counts calls to the API server by verb and what they were about.
type requests struct {
	mutex  sync.Mutex
	counts map[string]map[string]uint64
}

func newRequests() *requests {
	return &requests{counts: map[string]map[string]uint64{}}
}

// wrap counts every call that goes through a transport.
func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		r.count(request)
		return next.RoundTrip(request)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func (r *requests) count(request *http.Request) {
	resource, name := split(request.URL.Path)
	verb := strings.ToLower(request.Method)
	switch {
	case request.Method == http.MethodGet && request.URL.Query().Get("watch") != "":
		verb = "watch"
	case request.Method == http.MethodGet && name == "":
		verb = "list"
	case request.Method == http.MethodPost:
		verb = "create"
	case request.Method == http.MethodPut:
		verb = "update"
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.counts[resource] == nil {
		r.counts[resource] = map[string]uint64{}
	}
	r.counts[resource][verb]++
}

// split takes a path such as /apis/GROUP/VERSION/namespaces/NS/RESOURCE/NAME/status apart: the resource,
// with its subresource, and the name.
func split(path string) (resource, name string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 0 && parts[0] == "api":
		parts = parts[min(2, len(parts)):]
	case len(parts) > 0 && parts[0] == "apis":
		parts = parts[min(3, len(parts)):]
	default:
		return path, ""
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	switch len(parts) {
	case 0:
		return "discovery", ""
	case 1:
		return parts[0], ""
	case 2:
		return parts[0], parts[1]
	default:
		return parts[0] + "/" + parts[2], parts[1]
	}
}

// ServeHTTP answers with all counts as JSON: resource, then verb.
func (r *requests) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	w.Header().Set("Content-Type", "application/json")
	// A client that went away is nobody's problem.
	_ = json.NewEncoder(w).Encode(r.counts)
}
