package api

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// Parameters implements Thing.
func (r *ExampleResource) Parameters() *Parameters { return &r.Spec.ForProvider }

// Observed implements Thing.
func (r *ExampleResource) Observed() *Observation { return &r.Status.AtProvider }

// CloudKind implements Thing.
func (r *ExampleResource) CloudKind() string { return "example" }

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

// Parameters implements Thing.
func (b *Bucket) Parameters() *Parameters { return &b.Spec.ForProvider }

// Observed implements Thing.
func (b *Bucket) Observed() *Observation { return &b.Status.AtProvider }

// CloudKind implements Thing.
func (b *Bucket) CloudKind() string { return "bucket" }

// SetConditions implements resource.Conditioned.
func (b *Bucket) SetConditions(c ...xpv2.Condition) { b.Status.SetConditions(c...) }

// GetCondition implements resource.Conditioned.
func (b *Bucket) GetCondition(t xpv2.ConditionType) xpv2.Condition { return b.Status.GetCondition(t) }

// SetManagementPolicies implements resource.Manageable.
func (b *Bucket) SetManagementPolicies(p xpv2.ManagementPolicies) { b.Spec.ManagementPolicies = p }

// GetManagementPolicies implements resource.Manageable.
func (b *Bucket) GetManagementPolicies() xpv2.ManagementPolicies { return b.Spec.ManagementPolicies }

// SetWriteConnectionSecretToReference implements resource.LocalConnectionSecretWriterTo.
func (b *Bucket) SetWriteConnectionSecretToReference(s *xpv2.LocalSecretReference) {
	b.Spec.WriteConnectionSecretToReference = s
}

// GetWriteConnectionSecretToReference implements resource.LocalConnectionSecretWriterTo.
func (b *Bucket) GetWriteConnectionSecretToReference() *xpv2.LocalSecretReference {
	return b.Spec.WriteConnectionSecretToReference
}

// SetProviderConfigReference implements resource.TypedProviderConfigReferencer.
func (b *Bucket) SetProviderConfigReference(p *xpv2.ProviderConfigReference) {
	b.Spec.ProviderConfigReference = p
}

// GetProviderConfigReference implements resource.TypedProviderConfigReferencer.
func (b *Bucket) GetProviderConfigReference() *xpv2.ProviderConfigReference {
	return b.Spec.ProviderConfigReference
}
