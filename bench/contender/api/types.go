// Package api has the two kinds that the contender reconciles, typed as providers type them.
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
)

const version = "v1alpha1"

var (
	// ExampleGroup is the group of the cluster-scoped kind.
	ExampleGroup = schema.GroupVersion{Group: "example.crossplane.io", Version: version}
	// CloudGroup is the group of the namespaced kind.
	CloudGroup = schema.GroupVersion{Group: "cloud.concert.dev", Version: version}
	// ExampleResourceKind is cluster-scoped, with the older form of references.
	ExampleResourceKind = ExampleGroup.WithKind("ExampleResource")
	// BucketKind is namespaced, with the newer form of references.
	BucketKind = CloudGroup.WithKind("Bucket")
)

// AddToScheme makes both kinds known.
func AddToScheme(s *runtime.Scheme) error {
	example := &scheme.Builder{GroupVersion: ExampleGroup}
	example.Register(&ExampleResource{}, &ExampleResourceList{})
	if err := example.AddToScheme(s); err != nil {
		return err
	}
	cloud := &scheme.Builder{GroupVersion: CloudGroup}
	cloud.Register(&Bucket{}, &BucketList{})
	return cloud.AddToScheme(s)
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

// Status of either kind.
type Status struct {
	xpv2.ManagedResourceStatus `json:",inline"`
	AtProvider                 Observation `json:"atProvider,omitempty"`
}

// Thing is what both kinds have in common, for the client of the cloud.
type Thing interface {
	Parameters() *Parameters
	Observed() *Observation
	// CloudKind is the cloud's word for the kind.
	CloudKind() string
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

// BucketSpec is namespaced.
type BucketSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`
	ForProvider              Parameters `json:"forProvider"`
}

// Bucket is a namespaced managed resource with generated ids.
type Bucket struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              BucketSpec `json:"spec"`
	Status            Status     `json:"status,omitempty"`
}

// BucketList is a list of them.
type BucketList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Bucket `json:"items"`
}
