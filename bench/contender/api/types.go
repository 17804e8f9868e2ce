// Package api has the kinds that the contender works on, typed as providers type them: what it reconciles,
// and the ProviderConfig whose usages it notes.
//
// They mirror the definitions in providers/example/crds. Deep copies are written as controller-gen
// writes them, so that the contender pays what a real provider pays and not more.
package api

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
)

var (
	// Group is the group of all kinds.
	Group = schema.GroupVersion{Group: "example.crossplane.io", Version: "v1alpha1"}
	// ExampleResourceKind is cluster-scoped, with the older form of references.
	ExampleResourceKind = Group.WithKind("ExampleResource")
	// ProviderConfigKinds are what the accounting of usages is about.
	ProviderConfigKinds = resource.ProviderConfigKinds{
		Config:    Group.WithKind("ProviderConfig"),
		Usage:     Group.WithKind("ProviderConfigUsage"),
		UsageList: Group.WithKind("ProviderConfigUsageList"),
	}
)

// AddToScheme makes the kinds known.
func AddToScheme(s *runtime.Scheme) error {
	builder := &scheme.Builder{GroupVersion: Group}
	builder.Register(&ExampleResource{}, &ExampleResourceList{}, &ProviderConfig{}, &ProviderConfigList{},
		&ProviderConfigUsage{}, &ProviderConfigUsageList{})
	return builder.AddToScheme(s)
}

// Parameters is what a user may ask for.
type Parameters struct {
	Size      *int64            `json:"size,omitempty"`
	Region    *string           `json:"region,omitempty"`
	Tier      *string           `json:"tier,omitempty"`
	Tags      map[string]string `json:"tags,omitempty"`
	Password  *string           `json:"password,omitempty"`
	NetworkID *string           `json:"networkId,omitempty"`
}

// Observation is what the cloud says.
type Observation struct {
	ID        string `json:"id,omitempty"`
	State     string `json:"state,omitempty"`
	Endpoint  string `json:"endpoint,omitempty"`
	CreatedAt string `json:"createdAt,omitempty"`
	Region    string `json:"region,omitempty"`
	Size      int64  `json:"size,omitempty"`
}

// Status of a managed resource.
type Status struct {
	xpv2.ManagedResourceStatus `json:",inline"`
	AtProvider                 Observation `json:"atProvider,omitempty"`
}

// ExampleResourceSpec is cluster-scoped.
type ExampleResourceSpec struct {
	xpv2.ClusterManagedResourceSpec `json:",inline"`
	ForProvider                     Parameters `json:"forProvider"`
}

// ExampleResource is a cluster-scoped managed resource with generated ids.
type ExampleResource struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ExampleResourceSpec `json:"spec"`
	Status            Status              `json:"status,omitempty"`
}

// ExampleResourceList is a list of them.
type ExampleResourceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ExampleResource `json:"items"`
}
