// Command provider speaks external.proto.v1alpha1 with nothing but generated stubs.
//
// It proves the wire: whatever Concert's own SDK does, a provider written for the prototype must go on
// working. Things live in memory. With -misbehave it breaks the protocol in one of several ways.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"

	"concert.dev/testbed/provider/external"
)

// kinds collects repeated -kind flags.
type kinds []kind

type kind struct{ apiVersion, name string }

func (k *kinds) String() string { return fmt.Sprint(*k) }

func (k *kinds) Set(text string) error {
	apiVersion, name, ok := strings.Cut(text, ",")
	if !ok || apiVersion == "" || name == "" {
		return fmt.Errorf("%q is not APIVERSION,KIND", text)
	}
	*k = append(*k, kind{apiVersion, name})
	return nil
}

func main() {
	log.SetFlags(0)
	if err := run(); err != nil {
		log.Fatal("error: ", err)
	}
}

func run() error {
	var served kinds
	address := flag.String("address", "127.0.0.1:0", "where to listen")
	truthFile := flag.String("truth", "", "file to append creates, updates and deletes to")
	misbehave := flag.String("misbehave", "", "foreign, empty, hang, huge or garbage")
	deterministic := flag.Bool("deterministic", false, "use the object's name instead of a generated id")
	flag.Var(&served, "kind", "APIVERSION,KIND to serve; may be repeated")
	flag.Parse()

	if len(served) == 0 {
		served = kinds{{"example.crossplane.io/v1alpha1", "ExampleResource"}}
	}
	sin, err := parseSin(*misbehave)
	if err != nil {
		return err
	}
	truth, err := openTruth(*truthFile)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		return err
	}

	server := grpc.NewServer()
	external.RegisterExternalServiceServer(server, &service{
		kinds: served,
		sin:   sin,
		cloud: newCloud(truth, *deterministic),
	})

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	go func() {
		<-ctx.Done()
		// A session that hangs must not keep the process alive.
		timer := time.AfterFunc(5*time.Second, server.Stop)
		defer timer.Stop()
		server.GracefulStop()
	}()

	line := map[string]string{"address": listener.Addr().String()}
	if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
		return err
	}
	return server.Serve(listener)
}
