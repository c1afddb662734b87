package chaos_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/delayq/delayq/chaos"
	"github.com/delayq/delayq/internal/testenv"
)

// skewedVenue is a server whose clock is off: to the server it is all workers' clocks that are wrong.
func skewedVenue(backendName string, skew time.Duration) venueFunc {
	return func(t *testing.T) *venue {
		t.Helper()
		s := skewed(t, skew)
		p := testenv.Proxy(t, s.Addr())
		at := func(addr string) chaos.Endpoint { return chaos.Endpoint{Backend: backendName, Addr: addr} }
		admin := s.Client(t, patiently)
		return &venue{
			name: fmt.Sprintf("%s, clocks %+.0fh", backendName, -skew.Hours()), rate: 3000, patient: time.Minute, moot: backendName != "redisson", left: remains,
			straight: at(s.Addr()), bent: at(p.Addr()), opens: []chaos.OpenFunc{at(s.Addr()).Open, at(p.Addr()).Open},
			shift:  func() time.Duration { return skew },
			faults: append(networkFaults(p, redisGreeting), scriptFlush(admin), clientKill(admin), clocksWrong(s, skew)),
		}
	}
}

// skewed starts a server under a library that shifts its clock.
func skewed(t *testing.T, skew time.Duration) *testenv.RedisServer {
	t.Helper()
	server, err := exec.LookPath("redis-server")
	if err != nil || runtime.GOOS != "linux" {
		t.Skip("shifting a server's clock needs redis-server on Linux") // another system has no LD_PRELOAD; make installs the server
	}
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("shifting a server's clock needs a C compiler") // make installs one, for the race detector
	}
	dir := t.TempDir()
	lib := filepath.Join(dir, "clock.so")
	build := exec.CommandContext(t.Context(), cc, "-shared", "-fPIC", fmt.Sprintf("-DSKEW=(%d)", int(skew.Seconds())), "-o", lib, "testdata/clock.c")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	script := fmt.Sprintf("#!/bin/sh\nLD_PRELOAD=%s exec %s \"$@\"\n", lib, server)
	must(t, os.WriteFile(filepath.Join(dir, "redis-server"), []byte(script), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return testenv.Redis(t, testenv.Private())
}
