package main

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"concert.dev/testbed/provider/external"
)

// session opens one against a provider with the given sin.
func session(t *testing.T, s sin) external.ExternalService_SessionClient {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	external.RegisterExternalServiceServer(server, &service{
		kinds: kinds{{"example.crossplane.io/v1alpha1", "ExampleResource"}},
		sin:   s,
		cloud: newCloud(nil, false),
	})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	t.Cleanup(cancel)
	stream, err := external.NewExternalServiceClient(connection).Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func example(t *testing.T) *structpb.Struct {
	t.Helper()
	resource, err := structpb.NewStruct(map[string]any{
		"apiVersion": "example.crossplane.io/v1alpha1",
		"kind":       "ExampleResource",
		"metadata":   map[string]any{"name": "a", "uid": "u"},
		"spec":       map[string]any{"forProvider": map[string]any{"size": 3.0}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return resource
}

func ask(t *testing.T, stream external.ExternalService_SessionClient, request *external.Request) *external.Response {
	t.Helper()
	if err := stream.Send(request); err != nil {
		t.Fatal(err)
	}
	response, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return response
}

func connect(resource *structpb.Struct) *external.Request {
	return &external.Request{Op: &external.Request_Connect{Connect: &external.ConnectRequest{Resource: resource}}}
}

func observe(resource *structpb.Struct) *external.Request {
	return &external.Request{Op: &external.Request_Observe{Observe: &external.ObserveRequest{Resource: resource}}}
}

func TestALifeInOneSession(t *testing.T) {
	stream := session(t, none)
	ask(t, stream, connect(example(t)))
	if ask(t, stream, observe(example(t))).GetObserve().GetResourceExists() {
		t.Fatal("it exists before it was made")
	}
	created := ask(t, stream, &external.Request{Op: &external.Request_Create{Create: &external.CreateRequest{Resource: example(t)}}})
	made := created.GetCreate().GetResource()
	if object(made.AsMap()).externalName() == "" {
		t.Fatal("the create told no external name")
	}
	observed := ask(t, stream, observe(made)).GetObserve()
	if !observed.GetResourceExists() || !observed.GetResourceUpToDate() || !observed.GetResourceLateInitialized() {
		t.Fatalf("unexpected observation: %v", observed)
	}
	ask(t, stream, &external.Request{Op: &external.Request_Delete{Delete: &external.DeleteRequest{Resource: made}}})
	if ask(t, stream, observe(made)).GetObserve().GetResourceExists() {
		t.Fatal("it exists after it was deleted")
	}
	ask(t, stream, &external.Request{Op: &external.Request_Disconnect{Disconnect: &external.DisconnectRequest{}}})
}

func TestAnErrorEndsTheSessionWithCodeUnknown(t *testing.T) {
	stream := session(t, none)
	if err := stream.Send(observe(example(t))); err != nil {
		t.Fatal(err)
	}
	_, err := stream.Recv()
	if status.Code(err) != codes.Unknown || status.Convert(err).Message() != "connect must come first" {
		t.Fatal(err)
	}
}

func TestSinsShowInTheAnswers(t *testing.T) {
	for sin, isSeen := range map[sin]func(object) bool{
		foreign: func(o object) bool { return o.text("metadata", "name") == "somebody-else" },
		empty:   func(o object) bool { return len(o) == 0 },
		garbage: func(o object) bool { return o.text("metadata") != "" },
	} {
		stream := session(t, sin)
		ask(t, stream, connect(example(t)))
		if answer := ask(t, stream, observe(example(t))); !isSeen(answer.GetObserve().GetResource().AsMap()) {
			t.Errorf("%s: %v", sin, answer)
		}
	}
}
