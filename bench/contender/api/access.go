package api

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// SetConditions implements resource.Conditioned.
func (r *ExampleResource) SetConditions(c ...xpv2.Condition) { r.Status.SetConditions(c...) }

// GetCondition implements resource.Conditioned.
func (r *ExampleResource) GetCondition(t xpv2.ConditionType) xpv2.Condition {
	return r.Status.GetCondition(t)
}

// SetManagementPolicies implements resource.Manageable.
func (r *ExampleResource) SetManagementPolicies(p xpv2.ManagementPolicies) {
	r.Spec.ManagementPolicies = p
}

// GetManagementPolicies implements resource.Manageable.
func (r *ExampleResource) GetManagementPolicies() xpv2.ManagementPolicies {
	return r.Spec.ManagementPolicies
}

// SetWriteConnectionSecretToReference implements resource.ConnectionSecretWriterTo.
func (r *ExampleResource) SetWriteConnectionSecretToReference(s *xpv2.SecretReference) {
	r.Spec.WriteConnectionSecretToReference = s
}

// GetWriteConnectionSecretToReference implements resource.ConnectionSecretWriterTo.
func (r *ExampleResource) GetWriteConnectionSecretToReference() *xpv2.SecretReference {
	return r.Spec.WriteConnectionSecretToReference
}

// SetProviderConfigReference implements resource.ProviderConfigReferencer.
func (r *ExampleResource) SetProviderConfigReference(p *xpv2.Reference) {
	r.Spec.ProviderConfigReference = p
}

// GetProviderConfigReference implements resource.ProviderConfigReferencer.
func (r *ExampleResource) GetProviderConfigReference() *xpv2.Reference {
	return r.Spec.ProviderConfigReference
}

// SetDeletionPolicy implements resource.Orphanable.
func (r *ExampleResource) SetDeletionPolicy(p xpv2.DeletionPolicy) { r.Spec.DeletionPolicy = p }

// GetDeletionPolicy implements resource.Orphanable.
func (r *ExampleResource) GetDeletionPolicy() xpv2.DeletionPolicy { return r.Spec.DeletionPolicy }
