package testenv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	redisImage  = "redis:7"
	rabbitImage = "rabbitmq:4"
)

// containerSpec is the input of the program in container/.
type containerSpec struct {
	Image string
	Port  string // with its protocol, as 6379/tcp
	Args  []string
	Files map[string]string // contents by path
	Ready string            // the line of the log that says that the server is ready
}

// container is a server in Docker. Another program runs it, so that this module does not require
// testcontainers.
type container struct {
	program *Program
	log     string

	mu  sync.Mutex // one request at a time
	in  *json.Encoder
	out *json.Decoder
}

// dockerRuns returns nil when containers can be started. It tries once, since without Docker that
// takes a while.
var dockerRuns = sync.OnceValue(func() error {
	c, _, err := startContainer(containerSpec{})
	if err != nil {
		return err
	}
	return c.stop()
})

// startContainer returns the container and the address of its port. It has no time limit, since it
// may pull an image and build the program.
func startContainer(spec containerSpec) (*container, string, error) {
	dir, err := containerSource()
	if err != nil {
		return nil, "", err
	}
	log, err := os.CreateTemp("", "container-*.log")
	if err != nil {
		return nil, "", fmt.Errorf("making a log: %w", err)
	}
	_ = log.Close()
	cmd := exec.Command("go", "run", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	program, err := StartProgram(cmd, log.Name())
	if err != nil {
		return nil, "", errors.Join(err, os.Remove(log.Name()))
	}
	c := &container{program: program, log: log.Name(), in: json.NewEncoder(program.Input()), out: json.NewDecoder(program.Output())}
	addr, err := c.ask(spec)
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("running %s: %w\n%s", dir, err, program.Log()), c.stop())
	}
	return c, addr, nil
}

// containerSource returns the directory of the program, from any package or module of the
// repository.
func containerSource() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/delayq/delayq").Output()
	if err != nil {
		return "", fmt.Errorf("looking for the source of the library: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(root)), "internal", "testenv", "container"), nil
}

// ask sends a request and returns the output of the reply.
func (c *container) ask(request any) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.in.Encode(request); err != nil {
		return "", fmt.Errorf("writing to the container's program: %w", err)
	}
	var reply struct{ Output, Error string }
	if err := c.out.Decode(&reply); err != nil {
		return "", fmt.Errorf("reading from the container's program: %w", err)
	}
	if reply.Error != "" {
		return "", errors.New(reply.Error)
	}
	return reply.Output, nil
}

// stop ends the program's input, on which it stops the container, and waits for the program.
func (c *container) stop() error {
	err := c.program.in.Close()
	kill := time.AfterFunc(patience, func() { _ = c.program.Kill() })
	defer kill.Stop()
	_, readErr := io.Copy(io.Discard, c.program.Output())
	return errors.Join(err, readErr, c.program.Kill(), c.program.out.Close(), os.Remove(c.log))
}

func dockerRedis(set settings) (*running, error) {
	c, addr, err := startContainer(containerSpec{
		Image: redisImage, Port: "6379/tcp", Args: set.flags(), Ready: "* Ready to accept connections",
	})
	if err != nil {
		return nil, err
	}
	return &running{url: "redis://" + addr, stop: c.stop}, nil
}

func dockerRabbit(set rabbitSettings) (*running, error) {
	c, addr, err := startContainer(containerSpec{
		Image: rabbitImage, Port: "5672/tcp", Ready: "Server startup complete",
		Files: map[string]string{"/etc/rabbitmq/conf.d/90-test.conf": set.text(), "/etc/rabbitmq/advanced.config": set.advancedText()},
	})
	if err != nil {
		return nil, err
	}
	return &running{url: "amqp://guest:guest@" + addr + "/", control: rabbitContainer{c}, stop: c.stop}, nil
}

// rabbitContainer controls a broker in Docker by the tools inside.
type rabbitContainer struct{ *container }

func (c rabbitContainer) eval(expr string) (string, error) { return c.ctl("eval", expr) }

func (c rabbitContainer) ctl(args ...string) (string, error) {
	return c.ask(append([]string{"rabbitmqctl", "-q"}, args...))
}
