package main

import (
	"context"
	"errors"
	"maps"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"concert.dev/concert/bench/contender/api"
)

// external drives the cloud for the managed reconciler, as the client of a provider does.
type external struct{ cloud *cloud }

// Connect implements managed.ExternalConnector. The cloud needs no credentials.
func (e external) Connect(context.Context, resource.Managed) (managed.ExternalClient, error) {
	return e, nil
}

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
	seen, err := e.cloud.read(ctx, want.CloudKind(), id)
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
	parameters := want.Parameters()
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
	object := mg.GetName()
	if mg.GetNamespace() != "" {
		object = mg.GetNamespace() + "/" + object
	}
	made, err := e.cloud.create(ctx, wanted{
		Kind:       want.CloudKind(),
		Owner:      &owner{Kind: mg.GetObjectKind().GroupVersionKind().GroupKind().String(), Object: object, UID: string(mg.GetUID())},
		Properties: want.Parameters(),
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
	seen, err := e.cloud.update(ctx, want.CloudKind(), meta.GetExternalName(mg), want.Parameters())
	if err != nil {
		return managed.ExternalUpdate{}, err
	}
	return managed.ExternalUpdate{ConnectionDetails: details(seen)}, nil
}

// Delete implements managed.ExternalClient.
func (e external) Delete(ctx context.Context, mg resource.Managed) (managed.ExternalDelete, error) {
	want, err := thingOf(mg)
	if err != nil {
		return managed.ExternalDelete{}, err
	}
	mg.SetConditions(xpv2.Deleting())
	return managed.ExternalDelete{}, e.cloud.delete(ctx, want.CloudKind(), meta.GetExternalName(mg))
}

func thingOf(mg resource.Managed) (api.Thing, error) {
	thing, ok := mg.(api.Thing)
	if !ok {
		return nil, errors.New("the managed resource is of no kind that the cloud knows")
	}
	return thing, nil
}

func describe(want api.Thing, seen *thing) {
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
	*want.Observed() = observed
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
