// Command container runs a server in Docker for package testenv. It is a module of its own, so that
// users of the library do not download testcontainers.
//
// It reads a spec as JSON from standard input, starts the container, and replies with its address.
// Every further value that it reads is a command to run inside the container. At the end of the
// input it stops the container. A spec without an image only checks that Docker runs.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/exec"
	"github.com/testcontainers/testcontainers-go/wait"
)

// spec says which container to run; testenv writes it.
type spec struct {
	Image string
	Port  string // with its protocol, as 6379/tcp
	Args  []string
	Files map[string]string // contents by path
	Ready string            // the line of the log that says that the server is ready
}

type reply struct{ Output, Error string }

func main() {
	if err := serve(context.Background(), json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, in *json.Decoder, out *json.Encoder) (err error) {
	var s spec
	if err := in.Decode(&s); err != nil {
		return fmt.Errorf("reading the spec: %w", err)
	}
	if s.Image == "" {
		return out.Encode(replyOf("", health(ctx)))
	}
	c, addr, err := start(ctx, s)
	defer func() { err = errors.Join(err, testcontainers.TerminateContainer(c)) }()
	if err := out.Encode(replyOf(addr, err)); err != nil {
		return fmt.Errorf("writing the address: %w", err)
	}
	for {
		var command []string
		if err := in.Decode(&command); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading a command: %w", err)
		}
		if err := out.Encode(replyOf(run(ctx, c, command))); err != nil {
			return fmt.Errorf("writing a reply: %w", err)
		}
	}
}

func replyOf(output string, err error) reply {
	r := reply{Output: output}
	if err != nil {
		r.Error = err.Error()
	}
	return r
}

func health(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil { // testcontainers panics when it finds no Docker
			err = fmt.Errorf("looking for Docker: %v", r)
		}
	}()
	provider, err := testcontainers.ProviderDocker.GetProvider()
	if err != nil {
		return fmt.Errorf("looking for Docker: %w", err)
	}
	return provider.Health(ctx)
}

func start(ctx context.Context, s spec) (testcontainers.Container, string, error) {
	var files []testcontainers.ContainerFile
	for path, text := range s.Files {
		files = append(files, testcontainers.ContainerFile{Reader: strings.NewReader(text), ContainerFilePath: path, FileMode: 0o644})
	}
	c, err := testcontainers.Run(ctx, s.Image, testcontainers.WithExposedPorts(s.Port), testcontainers.WithCmdArgs(s.Args...),
		testcontainers.WithFiles(files...), testcontainers.WithWaitStrategy(wait.ForLog(s.Ready), wait.ForListeningPort(s.Port)))
	if err != nil {
		return c, "", fmt.Errorf("starting %s in Docker: %w", s.Image, err)
	}
	addr, err := c.PortEndpoint(ctx, s.Port, "")
	if err != nil {
		return c, "", fmt.Errorf("asking Docker for the port of %s: %w", s.Image, err)
	}
	return c, addr, nil
}

func run(ctx context.Context, c testcontainers.Container, command []string) (string, error) {
	code, output, err := c.Exec(ctx, command, exec.Multiplexed())
	if err != nil {
		return "", fmt.Errorf("running %q in Docker: %w", command, err)
	}
	text, err := io.ReadAll(output)
	if err != nil {
		return "", fmt.Errorf("reading the output of %q: %w", command, err)
	}
	if code != 0 {
		return "", fmt.Errorf("%q ended with %d: %s", command, code, text)
	}
	return strings.TrimSpace(string(text)), nil
}
