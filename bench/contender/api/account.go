package api

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
)

// ProviderConfigSpec says where credentials are.
type ProviderConfigSpec struct {
	Credentials Credentials `json:"credentials"`
}

// Credentials of an account.
type Credentials struct {
	Source                         xpv2.CredentialsSource `json:"source"`
	xpv2.CommonCredentialSelectors `json:",inline"`
}

// ProviderConfig is an account.
type ProviderConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ProviderConfigSpec        `json:"spec"`
	Status            xpv2.ProviderConfigStatus `json:"status,omitempty"`
}

// ProviderConfigList is a list of them.
type ProviderConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProviderConfig `json:"items"`
}

// ProviderConfigUsage says who uses an account.
type ProviderConfigUsage struct {
	metav1.TypeMeta          `json:",inline"`
	metav1.ObjectMeta        `json:"metadata,omitempty"`
	xpv2.ProviderConfigUsage `json:",inline"`
}

// ProviderConfigUsageList is a list of them.
type ProviderConfigUsageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProviderConfigUsage `json:"items"`
}

// SetUsers implements resource.UserCounter.
func (p *ProviderConfig) SetUsers(n int64) { p.Status.Users = n }

// GetUsers implements resource.UserCounter.
func (p *ProviderConfig) GetUsers() int64 { return p.Status.Users }

// SetConditions implements resource.Conditioned.
func (p *ProviderConfig) SetConditions(c ...xpv2.Condition) { p.Status.SetConditions(c...) }

// GetCondition implements resource.Conditioned.
func (p *ProviderConfig) GetCondition(t xpv2.ConditionType) xpv2.Condition {
	return p.Status.GetCondition(t)
}

// SetProviderConfigReference implements resource.RequiredProviderConfigReferencer.
func (u *ProviderConfigUsage) SetProviderConfigReference(r xpv2.Reference) {
	u.ProviderConfigReference = r
}

// GetProviderConfigReference implements resource.RequiredProviderConfigReferencer.
func (u *ProviderConfigUsage) GetProviderConfigReference() xpv2.Reference {
	return u.ProviderConfigReference
}

// SetResourceReference implements resource.RequiredTypedResourceReferencer.
func (u *ProviderConfigUsage) SetResourceReference(r xpv2.TypedReference) { u.ResourceReference = r }

// GetResourceReference implements resource.RequiredTypedResourceReferencer.
func (u *ProviderConfigUsage) GetResourceReference() xpv2.TypedReference { return u.ResourceReference }

// GetItems implements resource.ProviderConfigUsageList.
func (l *ProviderConfigUsageList) GetItems() []resource.ProviderConfigUsage {
	items := make([]resource.ProviderConfigUsage, len(l.Items))
	for i := range l.Items {
		items[i] = &l.Items[i]
	}
	return items
}

// DeepCopyInto copies.
func (p *ProviderConfig) DeepCopyInto(to *ProviderConfig) {
	to.TypeMeta = p.TypeMeta
	p.ObjectMeta.DeepCopyInto(&to.ObjectMeta)
	to.Spec.Credentials.Source = p.Spec.Credentials.Source
	p.Spec.Credentials.CommonCredentialSelectors.DeepCopyInto(&to.Spec.Credentials.CommonCredentialSelectors)
	p.Status.DeepCopyInto(&to.Status)
}

// DeepCopyObject implements runtime.Object.
func (p *ProviderConfig) DeepCopyObject() runtime.Object {
	to := &ProviderConfig{}
	p.DeepCopyInto(to)
	return to
}

// DeepCopyObject implements runtime.Object.
func (l *ProviderConfigList) DeepCopyObject() runtime.Object {
	to := &ProviderConfigList{TypeMeta: l.TypeMeta, Items: all(l.Items, (*ProviderConfig).DeepCopyInto)}
	l.ListMeta.DeepCopyInto(&to.ListMeta)
	return to
}

// DeepCopyInto copies.
func (u *ProviderConfigUsage) DeepCopyInto(to *ProviderConfigUsage) {
	to.TypeMeta = u.TypeMeta
	u.ObjectMeta.DeepCopyInto(&to.ObjectMeta)
	u.ProviderConfigUsage.DeepCopyInto(&to.ProviderConfigUsage)
}

// DeepCopyObject implements runtime.Object.
func (u *ProviderConfigUsage) DeepCopyObject() runtime.Object {
	to := &ProviderConfigUsage{}
	u.DeepCopyInto(to)
	return to
}

// DeepCopyObject implements runtime.Object.
func (l *ProviderConfigUsageList) DeepCopyObject() runtime.Object {
	to := &ProviderConfigUsageList{TypeMeta: l.TypeMeta, Items: all(l.Items, (*ProviderConfigUsage).DeepCopyInto)}
	l.ListMeta.DeepCopyInto(&to.ListMeta)
	return to
}
