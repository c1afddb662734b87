package zsetpoll_test

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// theEnd is the text that a test echoes to end its listening.
const theEnd = "no more to hear"

// listen returns a function that returns the commands sent to the server from now on up to theEnd,
// without those of scripts.
func listen(t *testing.T, addr string) func() []string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	must(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(conn, "MONITOR\r\n")
	must(t, err)
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() || lines.Text() != "+OK" {
		t.Fatalf("MONITOR says %q, %v", lines.Text(), lines.Err())
	}
	return func() (all []string) {
		t.Helper()
		for lines.Scan() {
			if line := lines.Text(); !strings.Contains(line, " lua] ") {
				all = append(all, line)
			}
			if strings.Contains(lines.Text(), theEnd) {
				return all
			}
		}
		t.Fatalf("the monitor stopped: %v", lines.Err())
		return nil
	}
}
