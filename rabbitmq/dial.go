package rabbitmq

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// A dialer connects to one of several nodes. Only one goroutine at a time may use it.
type dialer struct {
	urls []string
	tls  *tls.Config
	at   int // the node that answered last
}

func newDialer(o options) *dialer {
	d := &dialer{urls: []string{o.url}, tls: o.tls}
	u, err := url.Parse(o.url)
	if err != nil {
		return d // Open answers with that
	}
	for _, host := range o.hosts {
		u.Host = host
		d.urls = append(d.urls, u.String())
	}
	return d
}

// connect connects to the first node that answers.
func (d *dialer) connect(ctx context.Context) (conn *connection, err error) {
	var errs []error
	for range d.urls {
		if conn, err = connect(ctx, d.urls[d.at], d.tls); err == nil {
			return conn, nil
		}
		errs = append(errs, err)
		d.at = (d.at + 1) % len(d.urls)
	}
	return nil, errors.Join(errs...)
}

const (
	heartbeat   = 10 * time.Second
	dialTimeout = 10 * time.Second
)

// connect makes a connection. The context bounds it.
func connect(ctx context.Context, url string, c *tls.Config) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	stop := func() bool { return true }
	buffer := new(writeBuffer)
	config := amqp.Config{
		Heartbeat:       heartbeat,
		TLSClientConfig: c.Clone(), // the client library writes into it
		Properties:      amqp.Table{"connection_name": "delayq"},
		Dial: func(network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			// The client library takes the deadline off once the connection is open.
			stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
			deadline, _ := ctx.Deadline()
			buffer.Conn = conn
			return buffer, conn.SetDeadline(deadline)
		},
	}
	conn, err := amqp.DialConfig(url, config)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if over := late(ctx); over != nil && err != nil {
		return nil, explainConnect(over) // the connection's deadline may strike before the context's
	}
	if err != nil {
		return nil, explainConnect(err)
	}
	return &connection{conn, buffer}, nil
}

// late is the context's error, also at the very end of its time.
func late(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// explainConnect says what to do about a refusal.
func explainConnect(err error) error {
	var refusal *amqp.Error
	switch {
	case errors.Is(err, amqp.ErrCredentials) || errors.As(err, &refusal) && refusal.Code == amqp.AccessRefused:
		return &connectError{"the broker refused the user or password", err}
	case refusedWith(err, amqp.NotAllowed) && strings.Contains(err.Error(), "connection limit"):
		return &connectError{"the broker takes no more connections from this user or to this virtual host: raise the limit (rabbitmqctl set_user_limits, set_vhost_limits) or close others", err}
	case errors.Is(err, amqp.ErrVhost) || errors.As(err, &refusal) && refusal.Code == amqp.NotAllowed:
		return &connectError{"the broker has no such virtual host, or the user may not use it", err}
	default:
		return &connectError{"connecting to RabbitMQ", err}
	}
}

type connectError struct {
	what string
	err  error
}

func (e *connectError) Error() string { return e.what + ": " + e.err.Error() }
func (e *connectError) Unwrap() error { return e.err }
