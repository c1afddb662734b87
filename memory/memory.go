package memory

import (
	"context"
	"sync"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
)

// Backend keeps queues in the process's memory. It is safe for concurrent use.
type Backend struct {
	limits limits
	err    error // of an option; Open reports it

	mu      sync.Mutex
	stores  map[string]*store
	handles map[*queue]struct{}
	closed  bool
}

var _ backend.Backend = (*Backend)(nil)

// An Option sets a limit of [New].
type Option func(*Backend)

// MaxMessages caps the messages in one queue, in flight and dead ones included: n >= 1. A push
// beyond it returns backend.ErrFull, unless it replaces a message. Without it there is no cap.
func MaxMessages(n int) Option {
	return func(b *Backend) {
		if n < 1 {
			b.err = backend.Invalid("memory.MaxMessages", n, "1 or more")
		}
		b.limits.messages = n
	}
}

// MaxBytes caps the memory that ids, headers and bodies of one queue's messages take: n >= 1 bytes.
// A message counts with its size in memory: 3 to 8 bytes for lengths and 2 to 6 for each header are
// added, and the sum is rounded up by at most 7 bytes or an eighth, whichever is more. An id that
// UniqueFor keeps counts apart from its message, until its time is over. A push beyond the cap
// returns backend.ErrFull, unless it replaces a message of its size or a larger one. Without it
// there is no cap.
func MaxBytes(n int64) Option {
	return func(b *Backend) {
		if n < 1 {
			b.err = backend.Invalid("memory.MaxBytes", n, "1 or more")
		}
		b.limits.bytes = n
	}
}

// New returns an empty backend of its own. An option out of range is reported by Open.
func New(opts ...Option) *Backend {
	b := &Backend{stores: make(map[string]*store), handles: make(map[*queue]struct{})}
	for _, set := range opts {
		if set == nil {
			set = invalidOption
		}
		set(b)
	}
	return b
}

func invalidOption(b *Backend) {
	b.err = backend.Invalid("memory option", "nil", "the result of MaxMessages or MaxBytes")
}

// Traits returns the strictest promises but one: messages live in the process.
func (*Backend) Traits() backend.Traits {
	return backend.Traits{Name: "memory", Lacks: backend.Lacking(backend.Durability, backend.Transactions), Calls: backend.NoRoundTrip}
}

// Open returns a handle on the queue of that name, made when it does not exist. All
// handles of one queue must be given the same clock.
func (b *Backend) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	clock := o.Clock
	if clock == nil {
		clock = realClock
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.usableLocked(ctx); err != nil {
		return nil, err
	}
	s := b.stores[name]
	if s == nil {
		s = newStore(name, clock, b.limits)
		b.stores[name] = s
	}
	if given(s.clock) != given(clock) {
		return nil, backend.Invalid("clock", "another than this queue runs on", "one clock for all handles of a queue")
	}
	q := newQueue(s, b.forget)
	b.handles[q] = struct{}{}
	s.handles++
	return q, nil
}

// given returns the clock that the user gave, which package delayq wraps anew for each handle.
func given(c clockwork.Clock) clockwork.Clock {
	if wrapped, ok := c.(interface{ Unwrap() clockwork.Clock }); ok {
		return wrapped.Unwrap()
	}
	return c
}

// realClock is one value, so that two handles are seen to have the same clock.
var realClock = clockwork.NewRealClock()

func (b *Backend) usableLocked(ctx context.Context) error {
	switch {
	case b.closed:
		return backend.ErrClosed
	case b.err != nil:
		return b.err
	}
	return ctx.Err()
}

// Usage returns how many messages all queues hold, leased and dead ones included, and the bytes
// that their ids, headers and bodies take. Ids that UniqueFor keeps count too.
func (b *Backend) Usage() (messages int, bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.stores {
		m, n := s.usage()
		messages += m
		bytes += n
	}
	return messages, bytes
}

// Close closes all queues and drops their messages.
func (b *Backend) Close() error {
	b.mu.Lock()
	open := b.handles
	b.closed, b.handles, b.stores = true, nil, nil
	b.mu.Unlock()
	for q := range open {
		_ = q.Close()
	}
	return nil
}

// forget drops a handle, and with the last one a store that holds nothing: names may be made up
// without end.
func (b *Backend) forget(q *queue) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.handles, q)
	s := q.store
	if s.handles--; s.handles == 0 && b.stores[s.name] == s && s.isEmpty() {
		delete(b.stores, s.name)
	}
}
