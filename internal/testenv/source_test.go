package testenv

import (
	"errors"
	"strings"
	"testing"
)

func TestChooseSource(t *testing.T) {
	const url, binary = "redis://there", "/bin/redis-server"
	for _, c := range []struct {
		name             string
		url, binary      string
		docker           bool
		private, options bool
		want             source
	}{
		{"everything", url, binary, true, false, false, fromURL},
		{"no URL", "", binary, true, false, false, fromBinary},
		{"Docker only", "", "", true, false, false, fromDocker},
		{"nothing", "", "", false, false, false, nowhere},
		{"a URL has no options", url, binary, true, false, true, fromBinary},
		{"Docker has options", url, "", true, false, true, fromDocker},
		{"private is a process", url, binary, true, true, true, fromBinary},
		{"neither URL nor Docker is private", url, "", true, true, true, nowhere},
	} {
		docker := func() error {
			if c.docker {
				return nil
			}
			return errors.New("no Docker")
		}
		if got := chooseSource(c.url, c.binary, docker, c.private, c.options); got != c.want {
			t.Errorf("%s: source %d; want %d", c.name, got, c.want)
		}
	}
}

func TestRedisFromURL(t *testing.T) {
	own := Redis(t, Private())
	t.Setenv(redisURLVar, own.URL()+"/7")
	s := Redis(t)
	if s.Private() || s.Addr() != own.Addr() || s.Options().DB != 7 {
		t.Errorf("private %v at %s, database %d; want the server of the URL", s.Private(), s.Addr(), s.Options().DB)
	}
	mustPing(t, s.Client(t))
	mustRefuse(t, &s.handle, "the server")
	if other := Redis(t, AOF()); other.Addr() == own.Addr() {
		t.Error("a test with options got the server of the URL")
	}
}

// mustRefuse checks that a test cannot kill, pause or restart a server that is not its own.
func mustRefuse(t *testing.T, h *handle, what string) {
	t.Helper()
	for name, f := range map[string]func(*handle){
		"kill": (*handle).Kill, "pause": (*handle).Pause, "resume": (*handle).Resume, "restart": (*handle).Restart,
	} {
		r := record(t, func(tb testing.TB) { f(h.in(tb)) })
		if !strings.Contains(r.failed, "cannot "+name+" "+what) || !strings.Contains(r.failed, "not this test's own") {
			t.Errorf("%s ended with %q, %q", name, r.failed, r.skipped)
		}
	}
}

// in returns a handle on the same server for another test.
func (h *handle) in(tb testing.TB) *handle {
	other := *h
	other.tb = tb
	return &other
}

func (s *RabbitServer) in(tb testing.TB) *RabbitServer {
	return &RabbitServer{handle: *s.handle.in(tb), control: s.control}
}

func TestRabbitFromURL(t *testing.T) {
	shared := SharedRabbitMQ(t)
	vhost := shared.Vhost(t)
	t.Setenv(rabbitURLVar, shared.VhostURL(vhost))
	s := RabbitMQ(t)
	if s.Private() || s.Addr() != shared.Addr() || s.Vhost(t) != vhost {
		t.Errorf("private %v at %s, vhost %s; want the broker of the URL", s.Private(), s.Addr(), s.Vhost(t))
	}
	dialRabbit(t, s.URL())
	mustRefuse(t, &s.handle, "the broker")
	password, _ := s.parsed().User.Password() // no message may show it
	for name, f := range map[string]func(*RabbitServer){
		"kill":         func(s *RabbitServer) { s.Kill() },
		"sync":         (*RabbitServer).Sync,
		"alarm":        func(s *RabbitServer) { s.SetMemoryAlarm(true) },
		"make a vhost": func(s *RabbitServer) { s.AddVhost("v") },
		"add a user":   func(s *RabbitServer) { s.AddUser("u", "p", "v", RabbitPermissions{}) },
		"control":      func(s *RabbitServer) { s.Ctl("status") },
	} {
		r := record(t, func(tb testing.TB) { f(s.in(tb)) })
		if !strings.Contains(r.failed, "cannot "+name) || strings.Contains(r.failed, password) {
			t.Errorf("%s ended with %q", name, r.failed)
		}
	}
}

func TestBadURL(t *testing.T) {
	for _, c := range []struct{ variable, url, want string }{
		{redisURLVar, "http://localhost", "parsing " + redisURLVar},
		{redisURLVar, "redis://127.0.0.1:1", "asking the server of " + redisURLVar},
		{rabbitURLVar, "http://localhost", "parsing " + rabbitURLVar},
		{rabbitURLVar, "amqp://127.0.0.1:1", "asking the broker of " + rabbitURLVar},
	} {
		t.Setenv(c.variable, c.url)
		r := record(t, func(tb testing.TB) {
			if c.variable == redisURLVar {
				Redis(tb)
			} else {
				RabbitMQ(tb)
			}
		})
		if !strings.Contains(r.failed, c.want) {
			t.Errorf("%s: failed with %q, skipped with %q", c.url, r.failed, r.skipped)
		}
	}
}

func TestMissingServer(t *testing.T) {
	for _, k := range []kind{redisKind, rabbitKind} {
		for _, private := range []bool{false, true} {
			for list, wantSkip := range map[string]bool{"": true, "java": true, k.name: false} {
				t.Setenv(requireVar, list)
				r := record(t, func(tb testing.TB) { Require(tb, k.absent(private)) })
				said := r.failed
				if wantSkip {
					said = r.skipped
				}
				if !strings.Contains(said, "apt-get install "+k.program) {
					t.Errorf("private %v, required %q: failed with %q, skipped with %q", private, list, r.failed, r.skipped)
				}
			}
		}
	}
}

func TestUnknownRequirement(t *testing.T) {
	t.Setenv(requireVar, "redis,rabbit")
	for name, start := range map[string]func(testing.TB){
		"Redis":         func(tb testing.TB) { Redis(tb) },
		"RedisCluster":  func(tb testing.TB) { RedisCluster(tb) },
		"RabbitMQ":      func(tb testing.TB) { RabbitMQ(tb) },
		"RabbitCluster": func(tb testing.TB) { RabbitCluster(tb, 3) },
	} {
		r := record(t, start)
		if !strings.Contains(r.failed, `"rabbit" is unknown; known: redis, rabbitmq, java, beanstalkd, postgres, pgbouncer, shells`) {
			t.Errorf("%s: failed with %q, skipped with %q", name, r.failed, r.skipped)
		}
	}
}

func TestFindServer(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if path := findServer("env"); path != "/usr/bin/env" {
		t.Errorf("env is at %q; want it outside the PATH", path)
	}
	if path := findServer("no-such-server"); path != "" {
		t.Errorf("found %q", path)
	}
}
