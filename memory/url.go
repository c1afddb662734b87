package memory

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/backend/admin"
)

func init() { backend.Register("memory", new(shared).open) }

// shared are the backends that URLs name. They live as long as the process, as a server would, so
// that the same URL finds the same messages.
type shared struct {
	mu       sync.Mutex
	backends map[string]*Backend
}

// open reads memory://[STORE]/QUEUE[?max_messages=N&max_bytes=N]. Store and limits
// together name a backend of this process.
func (s *shared) open(_ context.Context, u *url.URL) (backend.Backend, string, error) {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, "", backend.Invalid("URL parameters", "(hidden)", "max_messages=N&max_bytes=N, percent-encoded")
	}
	opts, err := urlOptions(query)
	if err != nil {
		return nil, "", err
	}
	if u.User != nil || u.Fragment != "" || u.Opaque != "" {
		return nil, "", backend.Invalid("memory URL", "(hidden)", "memory://[store]/queue, without a user or a fragment")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.backends == nil {
		s.backends = make(map[string]*Backend)
	}
	which := u.Host + "?" + query.Encode()
	if s.backends[which] == nil {
		s.backends[which] = New(opts...)
	}
	return &borrowed{Backend: s.backends[which], handles: make(map[*queue]struct{})}, strings.TrimPrefix(u.Path, "/"), nil
}

// borrowed is one opening of a URL. Its Close closes its own handles; the backend under it outlives
// that, since others in the process may use it.
type borrowed struct {
	*Backend

	mu      sync.Mutex
	handles map[*queue]struct{}
	closed  bool
}

func (b *borrowed) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, backend.ErrClosed
	}
	opened, err := b.Backend.Open(ctx, name, o)
	if err != nil {
		return nil, err
	}
	q := opened.(*queue)
	forget := q.onClose
	q.onClose = func(q *queue) {
		forget(q)
		b.forget(q)
	}
	b.handles[q] = struct{}{}
	return q, nil
}

// The methods of an administrator are as the backend's own until the borrowed one is closed.

func (b *borrowed) Examine(ctx context.Context) (admin.Examination, error) {
	if b.isClosed() {
		return admin.Examination{}, backend.ErrClosed
	}
	return b.Backend.Examine(ctx)
}

func (b *borrowed) Queues(ctx context.Context) ([]string, error) {
	if b.isClosed() {
		return nil, backend.ErrClosed
	}
	return b.Backend.Queues(ctx)
}

func (b *borrowed) Remove(ctx context.Context, queue string) error {
	if b.isClosed() {
		return backend.ErrClosed
	}
	return b.Backend.Remove(ctx, queue)
}

func (b *borrowed) Remains(ctx context.Context, queues ...string) ([]string, error) {
	if b.isClosed() {
		return nil, backend.ErrClosed
	}
	return b.Backend.Remains(ctx, queues...)
}

func (b *borrowed) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

func (b *borrowed) forget(q *queue) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.handles, q)
}

func (b *borrowed) Close() error {
	b.mu.Lock()
	open := b.handles
	b.closed, b.handles = true, nil
	b.mu.Unlock()
	for q := range open {
		_ = q.Close()
	}
	return nil
}

var urlLimits = map[string]func(int64) Option{
	"max_messages": func(n int64) Option { return MaxMessages(int(n)) },
	"max_bytes":    MaxBytes,
}

func urlOptions(query url.Values) ([]Option, error) {
	var opts []Option
	for k, vs := range query {
		limit, known := urlLimits[k]
		if !known {
			return nil, backend.Invalid("URL parameter", k, "max_messages or max_bytes")
		}
		value := strings.Join(vs, ",") // given twice it is no number either
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 1 {
			return nil, backend.Invalid("URL parameter "+k, value, "a number, 1 or more")
		}
		opts = append(opts, limit(n))
	}
	return opts, nil
}
