package client

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

var errPlain = errors.New("the server speaks without TLS on this port: leave tls=true out, or name its TLS port")

// reach pings the server. A server without TLS takes the handshake for the beginning of a command
// and waits for the rest, so that the handshake would only time out. When it takes long, reach also
// sends a PING without TLS and without a password.
func (t *Target) reach(ctx context.Context) error {
	if t.Options.TLSConfig == nil {
		return t.ping(ctx)
	}
	pinging, end := context.WithCancelCause(ctx)
	var asking sync.WaitGroup
	asking.Go(func() {
		if isPlain(pinging, t.Options.Addrs[0]) {
			end(errPlain)
		}
	})
	err := t.ping(pinging)
	end(nil)
	asking.Wait()
	var record tls.RecordHeaderError
	if err != nil && (errors.Is(context.Cause(pinging), errPlain) || errors.As(err, &record)) {
		return errPlain
	}
	return err
}

// slowHandshake is more than most servers take.
const slowHandshake = 200 * time.Millisecond

// isPlain reports whether the server replies to a PING without TLS. It returns when ctx ends.
func isPlain(ctx context.Context, addr string) bool {
	select {
	case <-time.After(slowHandshake):
	case <-ctx.Done():
		return false
	}
	network := "tcp"
	if strings.HasPrefix(addr, "/") {
		network = "unix"
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return false
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
		return false
	}
	var first [1]byte
	_, err = io.ReadFull(conn, first[:])
	return err == nil && (first[0] == '+' || first[0] == '-') // also -NOAUTH
}
