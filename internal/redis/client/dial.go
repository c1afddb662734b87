package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"os"

	"github.com/redis/go-redis/v9"
)

// dialer connects as the client library does, but for a TLS handshake that ends with its context.
func dialer(o *redis.UniversalOptions) func(ctx context.Context, network, addr string) (net.Conn, error) {
	plain := redis.NewDialer(&redis.Options{DialTimeout: o.DialTimeout})
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := plain(ctx, network, addr)
		if err == nil && o.TLSConfig != nil {
			conn, err = handshake(ctx, conn, addr, o.TLSConfig)
		}
		if err != nil {
			return nil, dialError{err}
		}
		return conn, nil
	}
}

func handshake(ctx context.Context, conn net.Conn, addr string, config *tls.Config) (net.Conn, error) {
	if config.ServerName == "" {
		host, _, _ := net.SplitHostPort(addr)
		config = config.Clone()
		config.ServerName = host
	}
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		// nothing was sent
		return nil, &net.OpError{Op: "dial", Net: "tls", Addr: conn.RemoteAddr(), Err: err}
	}
	return secured, nil
}

// A dialError is an error of a client from this package. The call that needed the connection
// returns it.
type dialError struct{ error }

func (e dialError) Unwrap() error { return e.error }

// The client library prints each failure to connect to one logger for all clients, by default the
// standard error. Failures of clients from this package are in errors already, and are not printed.
func init() { redis.SetLogger(otherClients{}) }

// otherClients prints as the client library does by default.
type otherClients struct{}

var printer = log.New(os.Stderr, "redis: ", log.LstdFlags|log.Lshortfile)

func (otherClients) Printf(_ context.Context, format string, v ...any) {
	for _, arg := range v {
		var ours dialError
		if err, ok := arg.(error); ok && errors.As(err, &ours) {
			return
		}
	}
	_ = printer.Output(2, fmt.Sprintf(format, v...))
}
