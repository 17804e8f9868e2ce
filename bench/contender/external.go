package main

import (
	"context"
	"errors"
	"maps"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"concert.dev/concert/bench/contender/api"
)

// cloudKind is the cloud's word for the kind.
const cloudKind = "example"

// connector connects as providers do: it notes that the account is used, reads the account, and takes the
// credentials it names.
type connector struct {
	kube   client.Client
	usages resource.LegacyTracker
	cloud  *cloud
}

// Connect implements managed.ExternalConnector.
func (c connector) Connect(ctx context.Context, mg resource.Managed) (managed.ExternalClient, error) {
	thing, err := thingOf(mg)
	if err != nil {
		return nil, err
	}
	if err := c.usages.Track(ctx, thing); err != nil {
		return nil, err
	}
	account := &api.ProviderConfig{}
	if err := c.kube.Get(ctx, types.NamespacedName{Name: thing.GetProviderConfigReference().Name}, account); err != nil {
		return nil, err
	}
	from := account.Spec.Credentials
	if _, err := resource.CommonCredentialExtractor(ctx, from.Source, c.kube, from.CommonCredentialSelectors); err != nil {
		return nil, err
	}
	return external{c.cloud}, nil
}

// external drives the cloud for the managed reconciler, as the client of a provider does.
type external struct{ cloud *cloud }

// Disconnect implements managed.ExternalClient.
func (e external) Disconnect(context.Context) error { return nil }

// Observe implements managed.ExternalClient.
func (e external) Observe(ctx context.Context, mg resource.Managed) (managed.ExternalObservation, error) {
	want, err := thingOf(mg)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	id := meta.GetExternalName(mg)
	if id == "" {
		return managed.ExternalObservation{}, nil
	}
	seen, err := e.cloud.read(ctx, cloudKind, id)
	if err != nil || seen == nil {
		return managed.ExternalObservation{}, err
	}
	describe(want, seen)
	switch seen.State {
	case "ready":
		mg.SetConditions(xpv2.Available())
	case "creating":
		mg.SetConditions(xpv2.Creating())
	default:
		mg.SetConditions(xpv2.Unavailable())
	}
	parameters := &want.Spec.ForProvider
	lateInitialised := parameters.Tier == nil && seen.Properties.Tier != nil
	if lateInitialised {
		parameters.Tier = seen.Properties.Tier
	}
	return managed.ExternalObservation{
		ResourceExists:          true,
		ResourceUpToDate:        isUpToDate(parameters, &seen.Properties),
		ResourceLateInitialized: lateInitialised,
		ConnectionDetails:       details(seen),
	}, nil
}

// Create implements managed.ExternalClient.
func (e external) Create(ctx context.Context, mg resource.Managed) (managed.ExternalCreation, error) {
	want, err := thingOf(mg)
	if err != nil {
		return managed.ExternalCreation{}, err
	}
	made, err := e.cloud.create(ctx, wanted{
		Kind:       cloudKind,
		Owner:      &owner{Kind: mg.GetObjectKind().GroupVersionKind().GroupKind().String(), Object: mg.GetName(), UID: string(mg.GetUID())},
		Properties: &want.Spec.ForProvider,
	})
	if err != nil {
		return managed.ExternalCreation{}, err
	}
	meta.SetExternalName(mg, made.ID)
	return managed.ExternalCreation{ConnectionDetails: details(made)}, nil
}

// Update implements managed.ExternalClient.
func (e external) Update(ctx context.Context, mg resource.Managed) (managed.ExternalUpdate, error) {
	want, err := thingOf(mg)
	if err != nil {
		return managed.ExternalUpdate{}, err
	}
	seen, err := e.cloud.update(ctx, cloudKind, meta.GetExternalName(mg), &want.Spec.ForProvider)
	if err != nil {
		return managed.ExternalUpdate{}, err
	}
	return managed.ExternalUpdate{ConnectionDetails: details(seen)}, nil
}

// Delete implements managed.ExternalClient.
func (e external) Delete(ctx context.Context, mg resource.Managed) (managed.ExternalDelete, error) {
	mg.SetConditions(xpv2.Deleting())
	return managed.ExternalDelete{}, e.cloud.delete(ctx, cloudKind, meta.GetExternalName(mg))
}

func thingOf(mg resource.Managed) (*api.ExampleResource, error) {
	thing, ok := mg.(*api.ExampleResource)
	if !ok {
		return nil, errors.New("the managed resource is of no kind that the cloud knows")
	}
	return thing, nil
}

func describe(want *api.ExampleResource, seen *thing) {
	observed := api.Observation{
		ID:        seen.ID,
		State:     seen.State,
		Endpoint:  seen.Endpoint,
		CreatedAt: seen.CreatedAt.UTC().Format(time.RFC3339),
	}
	if seen.Properties.Region != nil {
		observed.Region = *seen.Properties.Region
	}
	if seen.Properties.Size != nil {
		observed.Size = *seen.Properties.Size
	}
	want.Status.AtProvider = observed
}

// isUpToDate compares what is asked for; what is not asked for may be anything.
func isUpToDate(want, have *api.Parameters) bool {
	return same(want.Size, have.Size) && same(want.Region, have.Region) && same(want.Tier, have.Tier) &&
		same(want.Password, have.Password) && same(want.NetworkID, have.NetworkID) &&
		(want.Tags == nil || maps.Equal(want.Tags, have.Tags))
}

func same[T comparable](want, have *T) bool {
	return want == nil || have != nil && *want == *have
}

func details(seen *thing) managed.ConnectionDetails {
	return managed.ConnectionDetails{
		xpv2.CredentialsSecretEndpointKey: []byte(seen.Endpoint),
		xpv2.CredentialsSecretUserKey:     []byte("admin"),
		xpv2.CredentialsSecretPasswordKey: []byte(seen.Password),
	}
}
