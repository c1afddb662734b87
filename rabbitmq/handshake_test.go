package rabbitmq_test

import (
	"io"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/delayq/delayq/internal/testenv"
)

// TestBusyBroker has a broker end the first connection within the login, as it does after 10 s when it is
// busy. The client library takes that for a wrong password.
func TestBusyBroker(t *testing.T) {
	t.Parallel()
	testenv.In(t, testenv.All)
	u, err := url.Parse(testenv.SharedRabbitMQ(t).URL())
	must(t, err)
	broker := u.Host
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for first := true; ; first = false {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", broker)
			if err != nil {
				_ = client.Close()
				continue
			}
			go func() { _, _ = io.Copy(client, server) }()
			if first { // only what comes before the login passes
				_, _ = io.CopyN(server, client, 8)
				time.AfterFunc(9500*time.Millisecond, func() { _ = client.Close() })
				continue
			}
			go func() { _, _ = io.Copy(server, client) }()
		}
	}()
	u.Host = l.Addr().String()
	b := newBackend(t, u.String())
	q, err := tryOpen(t, b, "q")
	must(t, err)
	must(t, q.Close())
}
