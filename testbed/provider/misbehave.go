package main

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"concert.dev/testbed/provider/external"
)

// sin is one way to break the protocol.
type sin string

const (
	none    sin = ""
	foreign sin = "foreign" // answers about another object
	empty   sin = "empty"   // answers with an empty object
	hang    sin = "hang"    // never answers
	huge    sin = "huge"    // answers with 100 MB
	garbage sin = "garbage" // answers with an object that is none
)

// hugeBytes is far beyond what anybody may send.
const hugeBytes = 100 << 20

func parseSin(text string) (sin, error) {
	switch s := sin(text); s {
	case none, foreign, empty, hang, huge, garbage:
		return s, nil
	default:
		return none, fmt.Errorf("-misbehave %q is not foreign, empty, hang, huge or garbage", text)
	}
}

// before waits for ever where that is the sin.
func (s sin) before(ctx context.Context) error {
	if s != hang {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

// spoil replaces the object of an answer. The answer to connect is left alone, so that the sin shows
// where something depends on it.
func (s sin) spoil(response *external.Response) *external.Response {
	if s == none || s == hang || response.GetConnect() != nil || response.GetDisconnect() != nil {
		return response
	}
	spoilt := proto.Clone(response).(*external.Response)
	switch op := spoilt.Op.(type) {
	case *external.Response_Observe:
		op.Observe.Resource = s.object(op.Observe.Resource)
	case *external.Response_Create:
		op.Create.Resource = s.object(op.Create.Resource)
	case *external.Response_Update:
		op.Update.Resource = s.object(op.Update.Resource)
	case *external.Response_Delete:
		op.Delete.Resource = s.object(op.Delete.Resource)
	}
	return spoilt
}

func (s sin) object(resource *structpb.Struct) *structpb.Struct {
	switch s {
	case foreign:
		metadata := resource.Fields["metadata"].GetStructValue()
		metadata.Fields["name"] = structpb.NewStringValue("somebody-else")
		metadata.Fields["uid"] = structpb.NewStringValue("00000000-0000-4000-8000-000000000000")
	case huge:
		resource.Fields["huge"] = structpb.NewStringValue(strings.Repeat("x", hugeBytes))
	case garbage:
		return &structpb.Struct{Fields: map[string]*structpb.Value{
			"metadata": structpb.NewStringValue("not an object"),
			"kind":     structpb.NewNumberValue(1),
			"status":   structpb.NewBoolValue(true),
		}}
	case empty:
		return &structpb.Struct{}
	}
	return resource
}
