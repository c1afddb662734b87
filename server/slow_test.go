package server_test

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/server"
)

// A body that does not come is an error, and holds no connection: also that of a request which is
// rejected before its body is read. Without a bound, nobody would get the reply.
func TestBodyThatDoesNotCome(t *testing.T) {
	t.Parallel()
	f := start(t, server.Timeout(time.Second))
	for head, status := range map[string]int{
		"POST " + orders + "messages HTTP/1.1\r\nHost: localhost":         http.StatusBadRequest,
		"POST " + orders + "messages HTTP/1.1\r\nHost: other.example.com": http.StatusForbidden,
		"GET " + orders + "stats HTTP/1.1\r\nHost: localhost":             http.StatusOK,
		"GET /healthz HTTP/1.1\r\nHost: localhost":                        http.StatusOK,
	} {
		t.Run(head, func(t *testing.T) {
			t.Parallel()
			c, err := net.Dial("tcp", strings.TrimPrefix(f.URL, "http://"))
			must(t, err)
			defer c.Close()
			must(t, c.SetDeadline(time.Now().Add(30*time.Second)))
			_, err = c.Write([]byte(head + "\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"))
			must(t, err)
			r, err := http.ReadResponse(bufio.NewReader(c), nil)
			must(t, err)
			_ = r.Body.Close()
			if r.StatusCode != status {
				t.Errorf("got %s, want %d", r.Status, status)
			}
		})
	}
}
