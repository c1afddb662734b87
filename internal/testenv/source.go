package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// source is where a server comes from.
type source int

const (
	nowhere source = iota
	fromURL
	fromBinary
	fromDocker
)

// chooseSource applies the order that the package promises. Docker comes last, since to look for it
// takes time.
func chooseSource(url, binary string, docker func() error, private, options bool) source {
	switch {
	case url != "" && !private && !options:
		return fromURL
	case binary != "":
		return fromBinary
	case !private && docker() == nil:
		return fromDocker
	}
	return nowhere
}

// kind is a kind of server.
type kind struct {
	name    string // the word of DELAYQ_REQUIRE
	noun    string
	program string
	urlVar  string
	example string // of a URL
	private string // the call that starts a server of a test's own
	find    func(program string) (path string)
	check   func(url string) error
}

// running is a server that runs already.
type running struct {
	url     string
	server  instance      // nil when it is no process of ours
	control rabbitControl // nil when it is no broker, or takes no commands from here
	stop    func() error
}

func (r *running) remove() error { return r.stop() }

// provide returns a server from the first source that there is.
func provide(k kind, private, options bool, launch, docker func() (*running, error)) (*running, error) {
	if err := checkRequire(os.Getenv(requireVar)); err != nil {
		return nil, err
	}
	url := os.Getenv(k.urlVar)
	switch chooseSource(url, k.find(k.program), dockerRuns, private, options) {
	case fromURL:
		if err := k.check(url); err != nil {
			return nil, err
		}
		return &running{url: url, stop: func() error { return nil }}, nil
	case fromBinary:
		return launch()
	case fromDocker:
		return docker()
	default:
		return nil, k.absent(private)
	}
}

// binary returns the program of a server of a test's own.
func (k kind) binary() (string, error) {
	if err := checkRequire(os.Getenv(requireVar)); err != nil {
		return "", err
	}
	if path := k.find(k.program); path != "" {
		return path, nil
	}
	return "", k.absent(true)
}

func (k kind) absent(private bool) error {
	install := fmt.Sprintf("install %[1]s (on Debian: apt-get install %[1]s)", k.program)
	if private {
		return &absentError{k.name, "this test starts and stops its own: " + install}
	}
	return &absentError{k.name, fmt.Sprintf("%s, set %s=%s, or start Docker", install, k.urlVar, k.example)}
}

// findServer also searches outside the PATH, since servers are often installed in root's
// directories.
func findServer(name string) string {
	for _, path := range []string{name, "/usr/sbin/" + name, "/usr/local/bin/" + name, "/usr/bin/" + name} {
		if found, err := exec.LookPath(filepath.FromSlash(path)); err == nil {
			return found
		}
	}
	return ""
}

// handle is the part of a test's handle that all kinds of servers have. Its methods end the test
// when they fail, so only the test's own goroutine may call them. They block until their effect is
// complete.
type handle struct {
	tb     testing.TB
	url    string
	kind   kind
	server instance // nil when the test must leave the server alone
}

// instance is a process that a test may kill, pause and restart.
type instance interface {
	kill() error
	pause() error
	resume() error
	restart() error
}

// own ends the test where a server has not started, and the server with the test.
func own[S interface{ remove() error }](tb testing.TB, s S, err error) S {
	tb.Helper()
	Require(tb, err)
	tb.Cleanup(func() { mustStop(tb, s.remove()) })
	return s
}

// handleOn returns a handle on a server that ends with the test.
func handleOn(tb testing.TB, k kind, r *running, err error) handle {
	tb.Helper()
	own(tb, r, err)
	return handle{tb: tb, url: r.url, kind: k, server: r.server}
}

func mustStop(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Errorf("removing a server: %v", err)
	}
}

// Private reports whether the test may kill, pause and restart the server. It may not if that is
// from a URL, from Docker or shared with other tests; the options Private and PrivateRabbit ask for
// a server of the test's own.
func (h *handle) Private() bool { return h.server != nil }

// Kill ends the server at once (SIGKILL), as a crash would.
func (h *handle) Kill() { h.tb.Helper(); h.do("kill", instance.kill) }

// Pause stops the server (SIGSTOP): connections stay open and get no replies.
func (h *handle) Pause() { h.tb.Helper(); h.do("pause", instance.pause) }

// Resume lets a paused server go on (SIGCONT).
func (h *handle) Resume() { h.tb.Helper(); h.do("resume", instance.resume) }

// Restart starts the server again on its port with the data that it has kept, and returns when it
// takes connections: a broker after some seconds. Redis keeps data with the option AOF. A server
// that still runs is shut down first.
func (h *handle) Restart() { h.tb.Helper(); h.do("restart", instance.restart) }

func (h *handle) do(what string, f func(instance) error) {
	h.tb.Helper()
	if !h.Private() {
		h.tb.Fatalf("cannot %s the %s %s: it is not this test's own; %s gives one", what, h.kind.noun, redacted(h.url), h.kind.private)
	}
	if err := f(h.server); err != nil {
		h.tb.Fatalf("cannot %s the %s: %v", what, h.kind.noun, err)
	}
}
