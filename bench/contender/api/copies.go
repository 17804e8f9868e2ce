package api

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
)

func pointer[T any](from *T) *T {
	if from == nil {
		return nil
	}
	to := *from
	return &to
}

func all[T any](from []T, into func(from, to *T)) []T {
	to := make([]T, len(from))
	for i := range from {
		into(&from[i], &to[i])
	}
	return to
}

// DeepCopyInto copies.
func (p *Parameters) DeepCopyInto(to *Parameters) {
	to.Size = pointer(p.Size)
	to.Region = pointer(p.Region)
	to.Tier = pointer(p.Tier)
	to.Tags = maps.Clone(p.Tags)
	to.Password = pointer(p.Password)
	to.NetworkID = pointer(p.NetworkID)
}

// DeepCopyInto copies.
func (s *Status) DeepCopyInto(to *Status) {
	s.ManagedResourceStatus.DeepCopyInto(&to.ManagedResourceStatus)
	to.AtProvider = s.AtProvider
}

// DeepCopyInto copies.
func (r *ExampleResource) DeepCopyInto(to *ExampleResource) {
	to.TypeMeta = r.TypeMeta
	r.ObjectMeta.DeepCopyInto(&to.ObjectMeta)
	r.Spec.ClusterManagedResourceSpec.DeepCopyInto(&to.Spec.ClusterManagedResourceSpec)
	r.Spec.ForProvider.DeepCopyInto(&to.Spec.ForProvider)
	r.Status.DeepCopyInto(&to.Status)
}

// DeepCopyObject implements runtime.Object.
func (r *ExampleResource) DeepCopyObject() runtime.Object {
	to := &ExampleResource{}
	r.DeepCopyInto(to)
	return to
}

// DeepCopyObject implements runtime.Object.
func (l *ExampleResourceList) DeepCopyObject() runtime.Object {
	to := &ExampleResourceList{TypeMeta: l.TypeMeta, Items: all(l.Items, (*ExampleResource).DeepCopyInto)}
	l.ListMeta.DeepCopyInto(&to.ListMeta)
	return to
}
