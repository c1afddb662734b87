package testenv

import (
	"net/url"
	"testing"
)

// RabbitServer is a test's handle on a RabbitMQ broker. Its methods end the test when they fail, so
// only the test's own goroutine may call them. They block until their effect is complete.
type RabbitServer struct {
	tb      testing.TB
	url     string
	control rabbitControl // nil when the broker cannot be controlled from here
	local   *localRabbit  // nil when the test must leave the broker alone
}

// RabbitMQ returns a broker that no other test uses, and that ends with the test. Without options
// that may be the broker of DELAYQ_RABBITMQ_URL, which others use and which may hold anything.
func RabbitMQ(tb testing.TB, opts ...RabbitOption) *RabbitServer {
	tb.Helper()
	running, err := provideRabbit(settleRabbit(opts))
	mustStart(tb, err)
	tb.Cleanup(func() { mustStop(tb, running.stop()) })
	if running.local != nil {
		tb.Cleanup(func() { logIfFailed(tb, running.local) })
	}
	return &RabbitServer{tb: tb, url: running.url, control: running.control, local: running.local}
}

func logIfFailed(tb testing.TB, r *localRabbit) {
	tb.Helper()
	if tb.Failed() {
		tb.Logf("The end of the log of the broker at %s:\n%s", r.addr(), r.process.tail())
	}
}

// URL is the broker's address for amqp.Dial: its first vhost, and a user with all rights.
func (s *RabbitServer) URL() string { return s.url }

// Addr is the broker's host and port.
func (s *RabbitServer) Addr() string { return s.parsed().Host }

// VhostURL is URL with another vhost.
func (s *RabbitServer) VhostURL(vhost string) string {
	s.tb.Helper()
	u := s.parsed()
	setVhost(u, vhost)
	return u.String()
}

// UserURL is VhostURL for another user.
func (s *RabbitServer) UserURL(name, password, vhost string) string {
	s.tb.Helper()
	u := s.parsed()
	u.User = url.UserPassword(name, password)
	setVhost(u, vhost)
	return u.String()
}

func setVhost(u *url.URL, vhost string) {
	u.Path, u.RawPath = "/"+vhost, "/"+url.PathEscape(vhost)
}

func (s *RabbitServer) parsed() *url.URL {
	s.tb.Helper()
	u, err := url.Parse(s.url)
	if err != nil {
		s.tb.Fatalf("parsing the URL of the broker: %v", err)
	}
	return u
}

// Private reports whether the test may kill, pause and restart the broker and raise its alarms. It
// may not if that is from a URL, from Docker or shared with other tests; PrivateRabbit asks for one
// of its own.
func (s *RabbitServer) Private() bool { return s.local != nil }

// Kill ends the broker at once (SIGKILL), as a crash would.
func (s *RabbitServer) Kill() {
	s.tb.Helper()
	s.do("kill", func() error { return s.local.process.kill() })
}

// Pause stops the broker (SIGSTOP): connections stay open and get no replies.
func (s *RabbitServer) Pause() {
	s.tb.Helper()
	s.do("pause", func() error { return s.local.process.pause() })
}

// Resume lets a paused broker go on (SIGCONT).
func (s *RabbitServer) Resume() {
	s.tb.Helper()
	s.do("resume", func() error { return s.local.process.resume() })
}

// Restart starts the broker again on its port, with its data, and returns when it takes
// connections: some seconds. A broker that still runs is shut down in good order first.
func (s *RabbitServer) Restart() {
	s.tb.Helper()
	s.do("restart", func() error { return s.local.restart() })
}

// Sync makes the quorum queues that were declared just now survive a Kill. RabbitMQ 3.10 writes
// down which ones it has up to 3 s after their declaration; killed before, it loses them with all
// messages that it has confirmed, and they never have a leader again.
func (s *RabbitServer) Sync() {
	s.tb.Helper()
	s.do("sync", func() error { return s.local.sync() })
}

// SetMemoryAlarm makes the broker block all connections that publish, or lets them go on. Clients
// learn of it (connection.blocked) when they publish next.
func (s *RabbitServer) SetMemoryAlarm(on bool) {
	s.tb.Helper()
	s.do("alarm", func() error { return s.local.setMemoryAlarm(on) })
}

func (s *RabbitServer) do(what string, f func() error) {
	s.tb.Helper()
	if !s.Private() {
		s.tb.Fatalf("cannot %s the broker %s: it is not this test's own; RabbitMQ(tb, PrivateRabbit()) gives one", what, s.parsed().Redacted())
	}
	if err := f(); err != nil {
		s.tb.Fatalf("cannot %s the broker: %v", what, err)
	}
}
