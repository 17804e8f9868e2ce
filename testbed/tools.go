//go:build tools

// Package testbed pins the real Kubernetes that our tests run against.
//
// The programs are imported for their module requirements only; `scripts/testbed` builds them. The
// build tag keeps this file out of every build, since programs cannot really be imported.
package testbed

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
