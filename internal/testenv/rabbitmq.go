package testenv

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	rabbitURLVar     = "DELAYQ_RABBITMQ_URL"
	rabbitScriptsVar = "DELAYQ_RABBITMQ_SCRIPTS"
)

var rabbitKind = kind{
	name: "rabbitmq", noun: "broker", program: "rabbitmq-server", urlVar: rabbitURLVar, example: "amqp://guest:guest@localhost:5672/vhost",
	private: "RabbitMQ(tb, PrivateRabbit())", find: findRabbit, check: checkRabbit,
}

// RabbitServer is a test's handle on a RabbitMQ broker.
type RabbitServer struct {
	handle
	control rabbitControl // nil when the broker cannot be controlled from here
}

// RabbitMQ returns a broker that no other test uses, and that ends with the test. Without options
// that may be the broker of DELAYQ_RABBITMQ_URL, which others use and which may hold anything.
func RabbitMQ(tb testing.TB, opts ...RabbitOption) *RabbitServer {
	tb.Helper()
	r, err := provideRabbit(newRabbitSettings(opts))
	s := &RabbitServer{handle: handleOn(tb, rabbitKind, r, err), control: r.control}
	if s.Private() {
		tb.Cleanup(func() { logIfFailed(tb, s.local()) })
	}
	return s
}

func logIfFailed(tb testing.TB, r *localRabbit) {
	tb.Helper()
	if tb.Failed() {
		tb.Logf("The end of the log of the broker at %s:\n%s", r.addr(), r.tail())
	}
}

// local returns the process of a broker that is the test's own.
func (s *RabbitServer) local() *localRabbit { return s.server.(*localRabbit) }

// URL is the broker's address for amqp.Dial: its first vhost, and a user with all rights.
func (s *RabbitServer) URL() string { return s.url }

// Addr is the broker's host and port.
func (s *RabbitServer) Addr() string { return s.parsed().Host }

// VhostURL is URL with another vhost.
func (s *RabbitServer) VhostURL(vhost string) string {
	s.tb.Helper()
	u := s.parsed()
	u.Path, u.RawPath = "/"+vhost, "/"+url.PathEscape(vhost)
	return u.String()
}

// UserURL is VhostURL for another user.
func (s *RabbitServer) UserURL(name, password, vhost string) string {
	s.tb.Helper()
	u := s.parsed()
	u.User = url.UserPassword(name, password)
	u.Path, u.RawPath = "/"+vhost, "/"+url.PathEscape(vhost)
	return u.String()
}

func (s *RabbitServer) parsed() *url.URL {
	s.tb.Helper()
	u, err := url.Parse(s.url)
	if err != nil {
		s.tb.Fatalf("parsing the URL of the broker: %v", err)
	}
	return u
}

// Sync makes the quorum queues that were declared just now survive a Kill. RabbitMQ 3.10 writes
// their list to the disk up to 3 s after their declaration. Killed before, it loses them with all
// messages that it has confirmed, and they never have a leader again.
func (s *RabbitServer) Sync() {
	s.tb.Helper()
	s.do("sync", func(instance) error { return s.local().sync() })
}

// SetMemoryAlarm makes the broker block all connections that publish, or lets them go on. Clients
// learn of it (connection.blocked) when they publish next.
func (s *RabbitServer) SetMemoryAlarm(on bool) {
	s.tb.Helper()
	s.do("alarm", func(instance) error { return s.local().setMemoryAlarm(on) })
}

func provideRabbit(set rabbitSettings) (*running, error) {
	return provide(rabbitKind, set.private, set.isSet(),
		func() (*running, error) { return launchRabbit(set) },
		func() (*running, error) { return dockerRabbit(set) })
}

// checkRabbit checks that the broker of a URL can be reached: a URL that is set must be usable.
func checkRabbit(url string) error {
	if _, err := amqp.ParseURI(url); err != nil {
		return fmt.Errorf("parsing %s: %w", rabbitURLVar, err)
	}
	if err := greet(url, patience); err != nil {
		return fmt.Errorf("asking the broker of %s: %w", rabbitURLVar, err)
	}
	return nil
}

// greet returns nil when the broker opens a connection.
func greet(url string, timeout time.Duration) error {
	conn, err := amqp.DialConfig(url, amqp.Config{Dial: amqp.DefaultDial(timeout)})
	if err != nil {
		return err
	}
	return conn.Close()
}

// findRabbit passes over Debian's wrapper on the PATH, which runs the script as the user of the
// system's own broker. DELAYQ_RABBITMQ_SCRIPTS names the scripts of a broker of another version.
func findRabbit(script string) string {
	for _, dir := range []string{os.Getenv(rabbitScriptsVar), "/usr/lib/rabbitmq/bin"} {
		if path, err := exec.LookPath(filepath.Join(dir, script)); dir != "" && err == nil {
			return path
		}
	}
	return findServer(script)
}
