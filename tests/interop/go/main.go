// Command interop is the other side of the interoperability tests: a Go program that registers and
// discovers through client-go in the formats of go-kratos' contrib/registry/kubernetes and of
// dubbo-go's remoting/kubernetes.
//
//	interop -server URL kratos patch ID NAME VERSION METADATA ENDPOINT...
//	interop -server URL kratos register NAMESPACE/POD ID NAME VERSION METADATA ENDPOINT...
//	interop -server URL kratos deregister NAMESPACE/POD
//	interop -server URL kratos get SERVICE
//	interop -server URL kratos watch SERVICE
//	interop -server URL dubbo create NAMESPACE/POD KEY VALUE
//	interop -server URL dubbo get KEY
//
// METADATA is a JSON object of strings. "patch" prints what "register" would send; "get" prints the
// instances as one line of JSON, "watch" one line for each change until it is killed.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func main() {
	server := flag.String("server", "http://127.0.0.1:8001", "the API server")
	contentType := flag.String("content-type", "", "how bodies are encoded (default: client-go's own)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *server, *contentType, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, server, contentType string, args []string) error {
	if len(args) < 3 {
		return fmt.Errorf("usage: interop [-server URL] kratos|dubbo COMMAND ARGUMENT...")
	}
	config := &rest.Config{Host: server, QPS: -1}
	config.ContentType = contentType
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	command, rest := args[0]+" "+args[1], args[2:]
	switch {
	case command == "kratos patch" && len(rest) >= 4:
		patch, err := registration(rest)
		if err != nil {
			return err
		}
		fmt.Println(string(patch))
		return nil
	case command == "kratos register" && len(rest) >= 5:
		patch, err := registration(rest[1:])
		if err != nil {
			return err
		}
		return patchPod(ctx, client, rest[0], patch)
	case command == "kratos deregister":
		patch, err := kratosPatch(instance{Metadata: map[string]string{}})
		if err != nil {
			return err
		}
		return patchPod(ctx, client, rest[0], patch)
	case command == "kratos get":
		return kratosGet(ctx, client, rest[0])
	case command == "kratos watch":
		return kratosWatch(ctx, client, rest[0])
	case command == "dubbo create" && len(rest) == 3:
		return dubboCreate(ctx, client, rest[0], rest[1], rest[2])
	case command == "dubbo get":
		return dubboGet(ctx, client, rest[0])
	}
	return fmt.Errorf("cannot do %q", strings.Join(args, " "))
}

// registration is the patch for ID NAME VERSION METADATA ENDPOINT...
func registration(args []string) ([]byte, error) {
	wanted := instance{ID: args[0], Name: args[1], Version: args[2], Endpoints: args[4:]}
	if err := json.Unmarshal([]byte(args[3]), &wanted.Metadata); err != nil {
		return nil, fmt.Errorf("metadata %q: %w", args[3], err)
	}
	return kratosPatch(wanted)
}

func printLine(value any) error {
	line, err := json.Marshal(value)
	if err != nil {
		return err
	}
	_, err = fmt.Println(string(line))
	return err
}
