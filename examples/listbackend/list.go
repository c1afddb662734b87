// Package list is the smallest backend that keeps every promise but speed: a slice under a mutex. It is here to be read beside
// docs/writing-a-backend.md, and to be copied.
package list

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
)

// Backend keeps its queues in this process. It is safe for concurrent use.
type Backend struct {
	mu      sync.Mutex
	stores  map[string]*store
	handles []*Queue
	closed  bool
}

// New returns an empty backend.
func New() *Backend { return &Backend{stores: make(map[string]*store)} }

// Traits claims all that a trait can claim, but that messages outlive the process, and ids their messages.
func (b *Backend) Traits() backend.Traits {
	return backend.Traits{Name: "list", Durability: backend.InProcess, NoUniqueFor: true}
}

// Open is as in backend.Backend.
func (b *Backend) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, backend.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if b.stores[name] == nil {
		b.stores[name] = &store{changed: make(chan struct{})}
	}
	q := &Queue{store: b.stores[name], clock: o.Clock, closed: make(chan struct{})}
	if q.clock == nil {
		q.clock = clockwork.NewRealClock()
	}
	b.handles = append(b.handles, q)
	return q, nil
}

// Close closes every handle.
func (b *Backend) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, q := range b.handles {
		_ = q.Close()
	}
	return nil
}

// store is what all handles on one name share.
type store struct {
	mu       sync.Mutex
	messages []*message // in push order
	dead     []*message // in the order of deaths
	last     uint64     // token, or place among the dead
	changed  chan struct{}
}

type message struct {
	backend.Message
	attempts int
	token    uint64 // of its lease, 0 for none
	until    time.Time

	reason string
	died   time.Time
	place  uint64
}

func (m *message) leased(now time.Time) bool { return m.token != 0 && m.until.After(now) }

// wake has everyone who waits look again.
func (s *store) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *store) find(id string) *message {
	if i := slices.IndexFunc(s.messages, func(m *message) bool { return m.ID == id }); i >= 0 {
		return s.messages[i]
	}
	return nil
}

func (s *store) buried(id string) *message {
	if i := slices.IndexFunc(s.dead, func(m *message) bool { return m.ID == id }); i >= 0 {
		return s.dead[i]
	}
	return nil
}

func without(ms []*message, gone *message) []*message {
	return slices.DeleteFunc(ms, func(m *message) bool { return m == gone })
}
