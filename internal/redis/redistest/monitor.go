package redistest

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Monitor returns a function that returns a line of MONITOR for each command that the server gets
// from now on, and for those of scripts, until the function is called.
func Monitor(t testing.TB, client *redis.Client) (stop func() []string) {
	t.Helper()
	const theEnd = "no more to hear"
	conn, err := net.Dial("tcp", client.Options().Addr)
	Must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	Must(t, conn.SetDeadline(time.Now().Add(4*Patience)))
	_, err = io.WriteString(conn, "MONITOR\r\n")
	Must(t, err)
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() || lines.Text() != "+OK" {
		t.Fatalf("MONITOR says %q, %v", lines.Text(), lines.Err())
	}
	heard := make(chan []string, 1)
	go func() { // the server ends the connection of a client that does not read
		var all []string
		for lines.Scan() && !strings.Contains(lines.Text(), theEnd) {
			all = append(all, lines.Text())
		}
		heard <- all
	}()
	return func() []string {
		t.Helper()
		Must(t, client.Echo(t.Context(), theEnd).Err())
		all := <-heard
		Must(t, lines.Err())
		return all
	}
}

// InScript reports whether a line of MONITOR is of a command that a script runs.
func InScript(line string) bool { return strings.Contains(line, " lua] ") }
