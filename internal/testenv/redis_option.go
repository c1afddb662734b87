package testenv

import (
	"fmt"
	"strconv"
	"strings"
)

// Option is a test's demand on its Redis server. A server from a URL meets none, so a test with
// options gets a server of its own.
type Option func(*settings)

type settings struct {
	private   bool
	replicas  int
	config    []directive
	libraries []string // to run under
}

type directive struct {
	name string
	args []string
}

// Private asks for a server that the test may kill, pause and restart.
func Private() Option { return func(s *settings) { s.private = true } }

// AOF keeps the data in an append-only file that is synced every second, so that a server that
// was killed finds them again.
func AOF() Option {
	return func(s *settings) { s.add("appendonly", "yes"); s.add("appendfsync", "everysec") }
}

// Replicas gives each master of a RedisCluster n replicas. A single server has none.
func Replicas(n int) Option { return func(s *settings) { s.replicas = n } }

// MaxMemory limits the server's memory, for example to "64mb". The policy at the limit is
// noeviction, allkeys-lru and so on.
func MaxMemory(limit, policy string) Option {
	return func(s *settings) { s.add("maxmemory", limit); s.add("maxmemory-policy", policy) }
}

// Directive adds a line to the server's configuration. Of two lines of one name the later counts.
// The default user must keep no password, or the server seems never to be ready.
func Directive(name string, args ...string) Option {
	return func(s *settings) { s.add(name, args...) }
}

func newSettings(opts []Option) settings {
	var s settings
	s.add("save", "")
	s.add("appendonly", "no")
	for _, opt := range opts {
		opt(&s)
	}
	return s
}

func (s *settings) add(name string, args ...string) {
	s.config = append(s.config, directive{name, args})
}

// text is the configuration as a file.
func (s *settings) text() string {
	var b strings.Builder
	for _, d := range s.config {
		b.WriteString(d.name)
		for _, arg := range d.args {
			fmt.Fprintf(&b, " %s", strconv.Quote(arg))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// flags is the configuration as arguments of the command.
func (s *settings) flags() []string {
	var flags []string
	for _, d := range s.config {
		flags = append(flags, "--"+d.name)
		flags = append(flags, d.args...)
	}
	return flags
}
