package testenv

import (
	"strings"
	"testing"
)

func TestRabbitFromURL(t *testing.T) {
	shared := SharedRabbitMQ(t)
	vhost := shared.Vhost(t)
	t.Setenv(rabbitURLVar, shared.VhostURL(vhost))
	s := RabbitMQ(t)
	if s.Private() || s.Addr() != shared.Addr() || s.Vhost(t) != vhost {
		t.Errorf("private %v at %s, vhost %s; want the broker of the URL", s.Private(), s.Addr(), s.Vhost(t))
	}
	dialRabbit(t, s.URL())
	password, _ := s.parsed().User.Password() // no message may show it
	for name, f := range map[string]func(*RabbitServer){
		"kill": (*RabbitServer).Kill, "pause": (*RabbitServer).Pause,
		"resume": (*RabbitServer).Resume, "restart": (*RabbitServer).Restart,
		"sync":         (*RabbitServer).Sync,
		"alarm":        func(s *RabbitServer) { s.SetMemoryAlarm(true) },
		"make a vhost": func(s *RabbitServer) { s.AddVhost("v") },
		"add a user":   func(s *RabbitServer) { s.AddUser("u", "p", "v", RabbitPermissions{}) },
		"control":      func(s *RabbitServer) { s.Ctl("status") },
	} {
		r := record(t, func(tb testing.TB) { f(&RabbitServer{tb: tb, url: s.url}) })
		if !strings.Contains(r.failed, "cannot "+name) || strings.Contains(r.failed, password) {
			t.Errorf("%s ended with %q", name, r.failed)
		}
	}
}

func TestRabbitBadURL(t *testing.T) {
	for url, want := range map[string]string{
		"http://localhost":   "parsing " + rabbitURLVar,
		"amqp://127.0.0.1:1": "asking the broker of " + rabbitURLVar,
	} {
		t.Setenv(rabbitURLVar, url)
		r := record(t, func(tb testing.TB) { RabbitMQ(tb) })
		if !strings.Contains(r.failed, want) {
			t.Errorf("%s: failed with %q, skipped with %q", url, r.failed, r.skipped)
		}
	}
}

func TestMissingRabbit(t *testing.T) {
	for _, private := range []bool{false, true} {
		for list, wantSkip := range map[string]bool{"": true, "redis": true, "rabbitmq": false} {
			t.Setenv(requireVar, list)
			r := record(t, func(tb testing.TB) { mustStart(tb, noRabbit(private)) })
			said := r.failed
			if wantSkip {
				said = r.skipped
			}
			if !strings.Contains(said, "apt-get install rabbitmq-server") {
				t.Errorf("private %v, required %q: failed with %q, skipped with %q", private, list, r.failed, r.skipped)
			}
		}
	}
}

func TestRabbitUnknownRequirement(t *testing.T) {
	t.Setenv(requireVar, "rabbit")
	for name, start := range map[string]func(testing.TB){
		"RabbitMQ":      func(tb testing.TB) { RabbitMQ(tb) },
		"RabbitCluster": func(tb testing.TB) { RabbitCluster(tb, 3) },
	} {
		r := record(t, start)
		if !strings.Contains(r.failed, `"rabbit" is unknown; known: redis, rabbitmq, java, beanstalkd, postgres, shells`) {
			t.Errorf("%s: failed with %q, skipped with %q", name, r.failed, r.skipped)
		}
	}
}
