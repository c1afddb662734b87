package testenv

import (
	"os/exec"
	"strings"
	"testing"
)

// TestContainerProgram builds and runs the program, whose reply reports that Docker is missing.
func TestContainerProgram(t *testing.T) {
	In(t, All)
	t.Setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
	c, _, err := startContainer(containerSpec{})
	if err == nil || !strings.Contains(err.Error(), "ocker") || strings.Contains(err.Error(), "reading from") {
		t.Fatalf("without Docker: %v, %v; want the reply that Docker is missing", c, err)
	}
}

// TestServersInDocker starts both servers in Docker, where it runs.
func TestServersInDocker(t *testing.T) {
	In(t, All)
	if _, err := exec.LookPath("docker"); err != nil {
		t.Skip("no docker on the PATH")
	}
	if out, err := exec.CommandContext(t.Context(), "docker", "info").CombinedOutput(); err != nil {
		t.Skipf("no Docker runs here: %s", out)
	}
	r, err := dockerRedis(newSettings(nil))
	must(t, err)
	defer func() { must(t, r.stop()) }()
	must(t, checkRedis(r.url))
	broker, err := dockerRabbit(newRabbitSettings(nil))
	must(t, err)
	defer func() { must(t, broker.stop()) }()
	must(t, greet(broker.url, patience))
	said, err := broker.control.eval("1 + 1.")
	if err != nil || said != "2" {
		t.Errorf("1 + 1 is %q, %v", said, err)
	}
}
