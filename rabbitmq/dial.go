package rabbitmq

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
)

// A dialer connects to one of several nodes. It is safe for concurrent use.
type dialer struct {
	urls []string
	tls  *tls.Config
	at   atomic.Int64 // the node that accepted the last connection
}

func newDialer(o options) *dialer {
	d := &dialer{urls: []string{o.url}, tls: o.tls}
	u, err := url.Parse(o.url)
	if err != nil {
		return d // Open returns the error
	}
	for _, host := range o.hosts {
		u.Host = host
		d.urls = append(d.urls, u.String())
	}
	return d
}

// connect connects to the first node that accepts.
func (d *dialer) connect(ctx context.Context) (conn *connection, err error) {
	within := onlyTimeout
	if len(d.urls) > 1 {
		within = nodeTimeout
	}
	var errs []error
	first := int(d.at.Load())
	for i := range d.urls {
		at := (first + i) % len(d.urls)
		if conn, err = connect(ctx, d.urls[at], d.tls, within); err == nil {
			d.at.Store(int64(at))
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

const (
	heartbeat   = 10 * time.Second
	nodeTimeout = 10 * time.Second // of one of several nodes, since the next one may reply sooner

	// onlyTimeout is the client library's own. A broker that has just started can need more than ten seconds.
	onlyTimeout = 30 * time.Second

	// handshakeTimeout is a little less than the broker's own, 10 s. A busy broker ends the connection then.
	// The client library takes the end of a connection before a reply for a refusal: before the login's
	// reply for ErrCredentials, before that of the virtual host for ErrVhost.
	handshakeTimeout = 9 * time.Second
)

// connect makes a connection within a time, and within the context.
func connect(ctx context.Context, url string, c *tls.Config, within time.Duration) (*connection, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("%w: there was no connection within %v", backend.ErrUnavailable, within))
	defer cancel()
	for {
		began := time.Now()
		conn, err := dial(ctx, url, c)
		if err == nil {
			return conn, nil
		}
		if deadline, _ := ctx.Deadline(); !time.Now().Before(deadline) {
			<-ctx.Done() // the connection's deadline can come before the context's
		}
		if ctx.Err() != nil {
			return nil, explainConnect(context.Cause(ctx))
		}
		if !errors.Is(err, amqp.ErrCredentials) && !errors.Is(err, amqp.ErrVhost) || time.Since(began) < handshakeTimeout {
			return nil, explainConnect(err)
		}
	}
}

// dial makes a connection until the context ends.
func dial(ctx context.Context, url string, c *tls.Config) (*connection, error) {
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
			// The client library removes the deadline once the connection is open.
			stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
			deadline, _ := ctx.Deadline()
			buffer.Conn = conn
			return buffer, conn.SetDeadline(deadline)
		},
	}
	conn, err := amqp.DialConfig(url, config)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	return &connection{conn, buffer}, nil
}

// explainConnect adds a remedy to the error of a refused connection.
func explainConnect(err error) error {
	var refusal *amqp.Error
	switch {
	case errors.Is(err, amqp.ErrVhost): // a broker that refuses a virtual host replies, with NotAllowed
		return fmt.Errorf("%w: the broker ended the connection before it opened the virtual host", backend.ErrUnavailable)
	case errors.Is(err, amqp.ErrCredentials) || errors.As(err, &refusal) && refusal.Code == amqp.AccessRefused:
		return fmt.Errorf("the broker refused the user or password: %w", err)
	case refusedWith(err, amqp.NotAllowed) && strings.Contains(err.Error(), "connection limit"):
		return fmt.Errorf("the broker takes no more connections from this user or to this virtual host: "+
			"raise the limit (rabbitmqctl set_user_limits, set_vhost_limits) or close others: %w", err)
	case refusedWith(err, amqp.NotAllowed):
		return fmt.Errorf("the broker has no such virtual host, or the user may not use it: %w", err)
	default:
		return fmt.Errorf("connecting to RabbitMQ: %w", classified(err))
	}
}
