package main

import "testing"

func TestPathsAreTakenApart(t *testing.T) {
	for path, want := range map[string][2]string{
		"/api/v1/namespaces/team/secrets/a":                                 {"secrets", "a"},
		"/apis/cloud.concert.dev/v1alpha1/namespaces/team/buckets/a":        {"buckets", "a"},
		"/apis/cloud.concert.dev/v1alpha1/namespaces/team/buckets/a/status": {"buckets/status", "a"},
		"/apis/cloud.concert.dev/v1alpha1/buckets":                          {"buckets", ""},
		"/apis/example.crossplane.io/v1alpha1/exampleresources/a/status":    {"exampleresources/status", "a"},
		"/api/v1/namespaces/team":                                           {"namespaces", "team"},
		"/apis":                                                             {"discovery", ""},
		"/version":                                                          {"/version", ""},
	} {
		if resource, name := split(path); resource != want[0] || name != want[1] {
			t.Errorf("%s: %q %q", path, resource, name)
		}
	}
}
