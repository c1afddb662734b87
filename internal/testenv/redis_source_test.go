package testenv

import (
	"errors"
	"strings"
	"testing"
)

func TestChooseRedis(t *testing.T) {
	const url, binary = "redis://there", "/bin/redis-server"
	for _, c := range []struct {
		name             string
		url, binary      string
		docker           bool
		private, options bool
		want             redisSource
	}{
		{"everything", url, binary, true, false, false, redisFromURL},
		{"no URL", "", binary, true, false, false, redisFromBinary},
		{"Docker only", "", "", true, false, false, redisFromDocker},
		{"nothing", "", "", false, false, false, redisNowhere},
		{"a URL has no options", url, binary, true, false, true, redisFromBinary},
		{"Docker has options", url, "", true, false, true, redisFromDocker},
		{"private is a process", url, binary, true, true, true, redisFromBinary},
		{"neither URL nor Docker is private", url, "", true, true, true, redisNowhere},
	} {
		docker := func() error {
			if c.docker {
				return nil
			}
			return errors.New("no Docker")
		}
		if got := chooseRedis(c.url, c.binary, docker, c.private, c.options); got != c.want {
			t.Errorf("%s: source %d; want %d", c.name, got, c.want)
		}
	}
}

func TestServerFromURL(t *testing.T) {
	own := Redis(t, Private())
	t.Setenv(redisURLVar, own.URL()+"/7")
	s := Redis(t)
	if s.Private() || s.Addr() != own.Addr() || s.Options().DB != 7 {
		t.Errorf("private %v at %s, database %d; want the server of the URL", s.Private(), s.Addr(), s.Options().DB)
	}
	mustPing(t, s.Client(t))
	for name, f := range map[string]func(*RedisServer){
		"kill": (*RedisServer).Kill, "pause": (*RedisServer).Pause,
		"resume": (*RedisServer).Resume, "restart": (*RedisServer).Restart,
	} {
		r := record(t, func(tb testing.TB) { f(&RedisServer{tb: tb, url: s.url, local: s.local}) })
		if !strings.Contains(r.failed, "cannot "+name+" the server") {
			t.Errorf("%s ended with %q", name, r.failed)
		}
	}
	if other := Redis(t, AOF()); other.Addr() == own.Addr() {
		t.Error("a test with options got the server of the URL")
	}
}

func TestBadURL(t *testing.T) {
	for url, want := range map[string]string{
		"http://localhost":    "parsing " + redisURLVar,
		"redis://127.0.0.1:1": "asking the server of " + redisURLVar,
	} {
		t.Setenv(redisURLVar, url)
		r := record(t, func(tb testing.TB) { Redis(tb) })
		if !strings.Contains(r.failed, want) {
			t.Errorf("%s: failed with %q, skipped with %q", url, r.failed, r.skipped)
		}
	}
}

func TestFindServer(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if path := findServer("env"); path != "/usr/bin/env" {
		t.Errorf("env is at %q; want it beyond the PATH", path)
	}
	if path := findServer("no-such-server"); path != "" {
		t.Errorf("found %q", path)
	}
}
