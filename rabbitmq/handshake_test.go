package rabbitmq_test

import (
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/delayq/delayq/internal/testenv"
)

// TestBrokerEndsHandshake has a broker end the first connection during the handshake, as it does at once
// when it stops, and after 10 s when it is busy. The client library takes that for a wrong password, or
// for a refused virtual host; the next connection is made all the same.
func TestBrokerEndsHandshake(t *testing.T) {
	t.Parallel()
	testenv.In(t, testenv.All)
	for name, c := range map[string]struct {
		frames int // passed on before
		after  time.Duration
	}{
		"login, busy":            {0, 9500 * time.Millisecond},
		"virtual host, busy":     {2, 9500 * time.Millisecond},
		"virtual host, stopping": {2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend(t, endsHandshake(t, c.frames, c.after))
			q, err := tryOpen(t, b, "q")
			must(t, err)
			must(t, q.Close())
		})
	}
}

// endsHandshake returns the URL of the shared broker through a proxy. Of the first connection, the broker
// gets only the protocol's header and so many frames; it ends the given time after them.
func endsHandshake(t *testing.T, frames int, after time.Duration) string {
	t.Helper()
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
			if first {
				_ = passFrames(server, client, frames)
				time.AfterFunc(after, func() { _ = client.Close() })
				continue
			}
			go func() { _, _ = io.Copy(server, client) }()
		}
	}()
	u.Host = l.Addr().String()
	return u.String()
}

// passFrames passes on AMQP's header of eight bytes, and so many frames.
func passFrames(to io.Writer, from io.Reader, frames int) error {
	_, err := io.CopyN(to, from, 8)
	for range frames {
		head := make([]byte, 7) // type, channel, size
		if err == nil {
			_, err = io.ReadFull(from, head)
		}
		if err == nil {
			_, err = to.Write(head)
		}
		if err == nil {
			_, err = io.CopyN(to, from, int64(binary.BigEndian.Uint32(head[3:]))+1) // and the end's byte
		}
	}
	return err
}
