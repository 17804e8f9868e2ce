package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"concert.dev/concert/bench/contender/api"
)

// cloud is a client of the example provider's cloud, over its control port.
type cloud struct {
	base   string
	client *http.Client
}

// thing is what the cloud answers.
type thing struct {
	ID         string         `json:"id"`
	State      string         `json:"state"`
	Endpoint   string         `json:"endpoint"`
	Password   string         `json:"password"`
	CreatedAt  time.Time      `json:"createdAt"`
	Properties api.Parameters `json:"properties"`
}

type owner struct {
	Kind   string `json:"kind"`
	Object string `json:"object"`
	UID    string `json:"uid"`
}

type wanted struct {
	Kind       string          `json:"kind,omitempty"`
	Owner      *owner          `json:"owner,omitempty"`
	Properties *api.Parameters `json:"properties"`
}

func newCloud(base string, connections int) *cloud {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	// One connection for each worker, kept: the contender must not pay for dialling.
	transport.MaxIdleConns = connections
	transport.MaxIdleConnsPerHost = connections
	return &cloud{base: strings.TrimRight(base, "/"), client: &http.Client{Transport: transport}}
}

// read returns nil where there is no such thing.
func (c *cloud) read(ctx context.Context, kind, id string) (*thing, error) {
	answer := &thing{}
	status, err := c.call(ctx, http.MethodGet, path(kind, id), nil, answer)
	if status == http.StatusNotFound {
		return nil, nil
	}
	return answer, err
}

func (c *cloud) create(ctx context.Context, want wanted) (*thing, error) {
	answer := &thing{}
	_, err := c.call(ctx, http.MethodPost, "/cloud/things", want, answer)
	return answer, err
}

func (c *cloud) update(ctx context.Context, kind, id string, properties *api.Parameters) (*thing, error) {
	answer := &thing{}
	_, err := c.call(ctx, http.MethodPut, path(kind, id), wanted{Properties: properties}, answer)
	return answer, err
}

func (c *cloud) delete(ctx context.Context, kind, id string) error {
	_, err := c.call(ctx, http.MethodDelete, path(kind, id), nil, nil)
	return err
}

func path(kind, id string) string {
	return "/cloud/things/" + url.PathEscape(id) + "?kind=" + url.QueryEscape(kind)
}

func (c *cloud) call(ctx context.Context, method, path string, body, answer any) (int, error) {
	var reader io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return 0, err
		}
		reader = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, reader)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	// Read to the end, so that the connection can be used again.
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return response.StatusCode, err
	}
	if response.StatusCode >= http.StatusBadRequest {
		return response.StatusCode, fmt.Errorf("the cloud answered %s: %s", response.Status, text)
	}
	if answer == nil {
		return response.StatusCode, nil
	}
	return response.StatusCode, json.Unmarshal(text, answer)
}
