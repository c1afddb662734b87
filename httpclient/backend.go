package httpclient

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/backend/admin"
	"github.com/delayq/delayq/internal/wire"
)

// Backend keeps messages on a server. It is safe for concurrent use.
type Backend struct {
	settings
	base   string // of the server, without a slash at the end
	client *http.Client
	store  wire.Store
	traits backend.Traits

	instance atomic.Pointer[string] // the last run of the server that was seen
	shared   atomic.Int64           // when two servers were seen at the address, in nanoseconds since 1970

	mu      sync.Mutex
	seen    []string // all runs of the server
	handles map[*queue]struct{}
	closed  bool
}

var (
	_ backend.Backend = (*Backend)(nil)
	_ admin.Lister    = (*Backend)(nil)
)

type settings struct {
	token   string
	wait    time.Duration
	timeout time.Duration
	client  *http.Client
}

// An Option changes a setting of [Dial].
type Option func(*settings) error

// Token is sent with each request.
func Token(token string) Option {
	return func(s *settings) error {
		s.token = token
		if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return backend.Invalid("httpclient.Token", "(hidden)", "a token of the server, printable ASCII")
		}
		return nil
	}
}

// Wait sets how long one receive waits on the server before it is repeated, 1 s to 10 min: 20 s by
// default. Proxies between client and server have to wait for longer.
func Wait(d time.Duration) Option {
	return func(s *settings) error {
		s.wait = d
		return between("httpclient.Wait", d)
	}
}

// Timeout bounds a call whose context has no deadline, 1 s to 10 min: a minute by default. Receive
// waits without a bound, in requests that do not take longer than Wait and Timeout together.
func Timeout(d time.Duration) Option {
	return func(s *settings) error {
		s.timeout = d
		return between("httpclient.Timeout", d)
	}
}

func between(what string, d time.Duration) error {
	if d < time.Second || d > 10*time.Minute {
		return backend.Invalid(what, d, "1s to 10m")
	}
	return nil
}

// HTTPClient replaces the client that sends the requests, for TLS with settings of your own. It must
// not follow redirects, and have no Timeout.
func HTTPClient(c *http.Client) Option {
	return func(s *settings) error {
		s.client = c
		if c == nil || c.Timeout != 0 {
			return backend.Invalid("httpclient.HTTPClient", "nil or with a Timeout", "a client without a Timeout")
		}
		return nil
	}
}

const (
	defaultWait    = 20 * time.Second
	defaultTimeout = time.Minute
)

// Dial asks the server of a URL, as https://queues.example.org, what its store is, and returns a
// backend on it. The caller closes the backend. It returns backend.ErrUnavailable while the server
// cannot be reached.
func Dial(ctx context.Context, server string, opts ...Option) (*Backend, error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, backend.Invalid("URL of a server", "(hidden)", "http://HOST[:PORT][/PATH] or https://…, without a login and parameters")
	}
	b := &Backend{
		settings: settings{wait: defaultWait, timeout: defaultTimeout},
		base:     strings.TrimSuffix(server, "/"), handles: make(map[*queue]struct{}),
	}
	for _, set := range opts {
		if set == nil {
			return nil, backend.Invalid("httpclient option", "nil", "the result of Token, Wait or another option")
		}
		if err := set(&b.settings); err != nil {
			return nil, err
		}
	}
	if b.client = b.settings.client; b.client == nil {
		b.client = newClient(nil)
	}
	err = b.get(ctx, "/v1/store", &b.store)
	if err == nil && b.store.Batch < 1 { // calls are made in batches of that many
		err = backend.Invalid("max_batch of the server", b.store.Batch, "1 or more, as a delayq server has; is there one at the URL?")
	}
	if err != nil {
		b.client.CloseIdleConnections()
		return nil, err
	}
	b.traits = b.store.Traits("httpclient")
	return b, nil
}

// Traits returns the promises of the store behind the server.
func (b *Backend) Traits() backend.Traits { return b.traits }

// Open returns a handle. The server makes the queue at the first call. It returns
// backend.ErrUnsupported for a clock.
func (b *Backend) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	if o.Clock != nil {
		return nil, &backend.UnsupportedError{Backend: b.traits.Name, Op: "a clock other than the store's"}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	q := newQueue(b, name, o.Logger)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, backend.ErrClosed
	}
	b.handles[q] = struct{}{}
	return q, nil
}

// Queues lists the queues of the store on which the token has a right.
func (b *Backend) Queues(ctx context.Context) ([]string, error) {
	b.mu.Lock()
	closed := b.closed
	b.mu.Unlock()
	if closed {
		return nil, backend.ErrClosed
	}
	var reply wire.Queues
	err := b.get(ctx, "/v1/queues", &reply)
	return reply.Queues, err
}

func (b *Backend) forget(q *queue) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.handles, q)
}

// Close closes all queues and the connections.
func (b *Backend) Close() error {
	b.mu.Lock()
	open := b.handles
	b.closed, b.handles = true, nil
	b.mu.Unlock()
	var closing sync.WaitGroup
	for q := range open {
		closing.Go(func() { _ = q.Close() })
	}
	closing.Wait()
	b.client.CloseIdleConnections()
	return nil
}
