package testenv

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Sentinel starts a Redis Sentinel that watches a master under a name, with further lines of its
// configuration. It returns its host and port. The Sentinel ends with the test.
func Sentinel(tb testing.TB, name, master string, config ...string) (addr string) {
	tb.Helper()
	s, err := launchSentinel(name, master, config)
	return own(tb, s, err).addr()
}

func launchSentinel(name, master string, config []string) (*local, error) {
	binary, err := redisKind.binary()
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(master)
	if err != nil {
		return nil, fmt.Errorf("reading the address of a master: %w", err)
	}
	s, err := newLocal("sentinel")
	if err != nil {
		return nil, err
	}
	return &s, s.launch(func() (err error) {
		if s.port, err = freePort(); err != nil {
			return err
		}
		lines := append([]string{
			"bind " + localhost, fmt.Sprintf("port %d", s.port), fmt.Sprintf("sentinel monitor %s %s %s 1", name, host, port),
		}, config...)
		file := s.file("sentinel.conf")
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			return fmt.Errorf("configuring a Sentinel: %w", err)
		}
		return s.run(exec.Command(binary, file, "--sentinel"), func() error { return dial(s.addr()) }, "Address already in use")
	})
}

// dial returns nil when a server listens.
func dial(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	return conn.Close()
}
