package testenv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/exec"
	"github.com/testcontainers/testcontainers-go/wait"
)

const rabbitImage, rabbitPort = "rabbitmq:4", "5672/tcp"

// rabbitContainer is a broker in Docker, which is told what to do by the tools inside.
type rabbitContainer struct{ container testcontainers.Container }

func dockerRabbit(set rabbitSettings) (*runningRabbit, error) {
	ctx := context.Background() // pulling the image takes as long as it takes
	container, err := testcontainers.Run(ctx, rabbitImage,
		testcontainers.WithExposedPorts(rabbitPort),
		testcontainers.WithFiles(
			testcontainers.ContainerFile{Reader: strings.NewReader(set.text()), ContainerFilePath: "/etc/rabbitmq/conf.d/90-test.conf", FileMode: 0o644},
			testcontainers.ContainerFile{Reader: strings.NewReader(set.advancedText()), ContainerFilePath: "/etc/rabbitmq/advanced.config", FileMode: 0o644},
		),
		testcontainers.WithWaitStrategy(wait.ForLog("Server startup complete"), wait.ForListeningPort(rabbitPort)),
	)
	stop := func() error { return testcontainers.TerminateContainer(container) }
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s in Docker: %w", rabbitImage, err), stop())
	}
	addr, err := container.PortEndpoint(ctx, rabbitPort, "")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("asking Docker for the port of %s: %w", rabbitImage, err), stop())
	}
	return &runningRabbit{url: "amqp://guest:guest@" + addr + "/", control: rabbitContainer{container}, stop: stop}, nil
}

func (c rabbitContainer) eval(expr string) (string, error) { return c.ctl("eval", expr) }

func (c rabbitContainer) ctl(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	code, output, err := c.container.Exec(ctx, append([]string{"rabbitmqctl", "-q"}, args...), exec.Multiplexed())
	if err != nil {
		return "", fmt.Errorf("running rabbitmqctl in Docker: %w", err)
	}
	text, err := io.ReadAll(output)
	if err != nil {
		return "", fmt.Errorf("reading what rabbitmqctl says: %w", err)
	}
	if code != 0 {
		return "", fmt.Errorf("rabbitmqctl %s ended with %d: %s", strings.Join(args, " "), code, text)
	}
	return strings.TrimSpace(string(text)), nil
}
