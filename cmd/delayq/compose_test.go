package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/delayq/delayq/internal/testenv"
)

// A composeFile is what compose.yaml may have: an unknown field is an error.
type composeFile struct {
	Name     string
	Services map[string]composeService
	Volumes  map[string]any
}

type composeService struct {
	Image, Hostname, Build string
	Command                []string
	Environment            map[string]string
	Ports, Volumes         []string
	Profiles               []string
	Healthcheck            struct {
		Test              []string
		Interval, Timeout string
		Retries           int
	}
	DependsOn map[string]struct{ Condition string } `yaml:"depends_on"`
}

func readCompose(t *testing.T) (c composeFile) {
	t.Helper()
	raw, err := os.ReadFile("../../compose.yaml")
	mustDo(t, err)
	d := yaml.NewDecoder(bytes.NewReader(raw))
	d.KnownFields(true)
	mustDo(t, d.Decode(&c))
	return c
}

func TestCompose(t *testing.T) {
	t.Parallel()
	c := readCompose(t)
	for name, s := range c.Services {
		for _, port := range s.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s: port %s is open to the network", name, port)
			}
		}
		for _, volume := range s.Volumes {
			volume, _, _ = strings.Cut(volume, ":")
			if _, ok := c.Volumes[volume]; !ok {
				t.Errorf("%s: no volume is called %s", name, volume)
			}
		}
		for other, on := range s.DependsOn {
			if on.Condition != "service_healthy" || len(c.Services[other].Healthcheck.Test) == 0 {
				t.Errorf("%s waits for %q of %s, whose check is %q", name, on.Condition, other, c.Services[other].Healthcheck.Test)
			}
		}
	}

	parser, err := newParser(t.Context(), streams{})
	mustDo(t, err)
	if called, err := parser.Parse(c.Services["serve"].Command); err != nil || called.Command() != "serve" {
		t.Errorf("the command of serve, %q: %v", c.Services["serve"].Command, err)
	}

	makefile, err := os.ReadFile("../../Makefile")
	mustDo(t, err)
	for image, server := range map[string]string{c.Services["redis"].Image: "Redis ", c.Services["rabbitmq"].Image: "RabbitMQ "} {
		_, version, _ := strings.Cut(image, ":")
		version, _, _ = strings.Cut(version, "-")
		if version == "" || !strings.Contains(string(makefile), server+version) {
			t.Errorf("make test-newer does not test %s%q", server, version)
		}
	}

	page, err := os.ReadFile("../../docs/rabbitmq.md")
	mustDo(t, err)
	if args := c.Services["rabbitmq"].Environment["RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS"]; args == "" || !strings.Contains(string(page), "`"+args+"`") {
		t.Errorf("docs/rabbitmq.md does not recommend %q", args)
	}
}

// A Redis with the settings of compose.yaml leaves nothing for doctor to warn of.
func TestComposeRedis(t *testing.T) {
	t.Parallel()
	command := readCompose(t).Services["redis"].Command
	if len(command)%2 == 0 || command[0] != "redis-server" {
		t.Fatalf("the command is %q; want redis-server and pairs", command)
	}
	var settings []testenv.Option
	for i := 1; i < len(command); i += 2 {
		settings = append(settings, testenv.Directive(strings.TrimPrefix(command[i], "--"), command[i+1]))
	}
	server := testenv.Redis(t, settings...)
	// The first Open of keyspace would turn the notifications on.
	events, err := server.Client(t).ConfigGet(t.Context(), "notify-keyspace-events").Result()
	mustDo(t, err)
	if e := events["notify-keyspace-events"]; !strings.Contains(e, "E") || !strings.ContainsAny(e, "xA") {
		t.Errorf("notify-keyspace-events is %q: keyspace needs Ex", e)
	}
	for _, scheme := range []string{"keyspace", "zsetpoll", "redisson"} {
		all := findings(t, urlOf(server, scheme), exitOK)
		wantFinding(t, all, "eviction", "ok", "maxmemory-policy is noeviction")
		wantFinding(t, all, "persistence", "ok", "an append-only file keeps what is written")
		if scheme == "keyspace" {
			wantFinding(t, all, "notifications", "ok", "")
		}
	}
}
