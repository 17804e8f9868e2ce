package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/structpb"

	"concert.dev/testbed/provider/external"
)

// service behaves as the prototype's server: connect first, one answer for each request, whole objects
// in every answer, and any error ends the session.
type service struct {
	external.UnimplementedExternalServiceServer

	kinds kinds
	sin   sin
	cloud *cloud
}

func (s *service) Discover(context.Context, *external.DiscoveryRequest) (*external.DiscoveryResponse, error) {
	response := &external.DiscoveryResponse{Version: "v1alpha1"}
	for _, k := range s.kinds {
		response.Reconcilers = append(response.Reconcilers, &external.Reconciler{
			Named: k.name,
			For:   &external.Reconciler_Reference{ApiVersion: k.apiVersion, Kind: k.name},
		})
	}
	return response, nil
}

func (s *service) Session(stream grpc.BidiStreamingServer[external.Request, external.Response]) error {
	var connected *kind
	for {
		request, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.sin.before(stream.Context()); err != nil {
			return err
		}
		response, err := s.answer(request, &connected)
		if err != nil {
			// A plain error, as handlers return it: gRPC makes the code Unknown of it.
			return err
		}
		if err := stream.Send(s.sin.spoil(response)); err != nil {
			return err
		}
		if request.GetDisconnect() != nil {
			return nil
		}
	}
}

func (s *service) answer(request *external.Request, connected **kind) (*external.Response, error) {
	if request.GetDisconnect() != nil {
		return &external.Response{Op: &external.Response_Disconnect{Disconnect: &external.DisconnectResponse{}}}, nil
	}
	resource := resourceOf(request)
	if resource == nil {
		return nil, errors.New("the request carries no object")
	}
	object := object(resource.AsMap())
	k, err := s.kindOf(object)
	if err != nil {
		return nil, err
	}
	if request.GetConnect() != nil {
		*connected = k
		return s.connect(object)
	}
	if *connected == nil {
		return nil, errors.New("connect must come first")
	}
	if **connected != *k {
		return nil, fmt.Errorf("the session is for %v, not for %v", **connected, *k)
	}
	switch request.Op.(type) {
	case *external.Request_Observe:
		return s.observe(object)
	case *external.Request_Create:
		return s.create(object)
	case *external.Request_Update:
		return s.update(object)
	case *external.Request_Delete:
		return s.delete(object)
	default:
		return nil, errors.New("unknown operation")
	}
}

func (s *service) kindOf(object object) (*kind, error) {
	for i := range s.kinds {
		if s.kinds[i].apiVersion == object.text("apiVersion") && s.kinds[i].name == object.text("kind") {
			return &s.kinds[i], nil
		}
	}
	return nil, fmt.Errorf("no handler for %s, Kind=%s", object.text("apiVersion"), object.text("kind"))
}

func (s *service) connect(object object) (*external.Response, error) {
	resource, err := structpb.NewStruct(object)
	return &external.Response{Op: &external.Response_Connect{Connect: &external.ConnectResponse{Resource: resource}}}, err
}

func (s *service) observe(object object) (*external.Response, error) {
	observed := &external.ObserveResponse{}
	if thing, ok := s.cloud.read(object); ok {
		observed.ResourceExists = true
		observed.ResourceUpToDate = thing.matches(object)
		observed.ResourceLateInitialized = object.lateInitialise("tier", "standard")
		observed.ConnectionDetails = thing.details()
		object.setStatus(thing)
	}
	resource, err := structpb.NewStruct(object)
	observed.Resource = resource
	return &external.Response{Op: &external.Response_Observe{Observe: observed}}, err
}

func (s *service) create(object object) (*external.Response, error) {
	thing, err := s.cloud.create(object)
	if err != nil {
		return nil, err
	}
	object.setExternalName(thing.ID)
	resource, err := structpb.NewStruct(object)
	created := &external.CreateResponse{
		Resource:          resource,
		ConnectionDetails: thing.details(),
		AdditionalDetails: map[string]string{"id": thing.ID},
	}
	return &external.Response{Op: &external.Response_Create{Create: created}}, err
}

func (s *service) update(object object) (*external.Response, error) {
	thing, err := s.cloud.update(object)
	if err != nil {
		return nil, err
	}
	resource, err := structpb.NewStruct(object)
	updated := &external.UpdateResponse{Resource: resource, ConnectionDetails: thing.details()}
	return &external.Response{Op: &external.Response_Update{Update: updated}}, err
}

func (s *service) delete(object object) (*external.Response, error) {
	if err := s.cloud.delete(object); err != nil {
		return nil, err
	}
	resource, err := structpb.NewStruct(object)
	return &external.Response{Op: &external.Response_Delete{Delete: &external.DeleteResponse{Resource: resource}}}, err
}

func resourceOf(request *external.Request) *structpb.Struct {
	switch op := request.Op.(type) {
	case *external.Request_Connect:
		return op.Connect.GetResource()
	case *external.Request_Observe:
		return op.Observe.GetResource()
	case *external.Request_Create:
		return op.Create.GetResource()
	case *external.Request_Update:
		return op.Update.GetResource()
	case *external.Request_Delete:
		return op.Delete.GetResource()
	default:
		return nil
	}
}
