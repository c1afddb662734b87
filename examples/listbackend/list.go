// Package list is a backend with every method, in one slice under a mutex. It keeps all promises
// but speed, durability and UniqueFor. Read it with docs/writing-a-backend.md, and copy it.
package list

import (
	"cmp"
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

// Traits declares what is lacking: messages end with the process, and ids with their messages.
func (b *Backend) Traits() backend.Traits {
	return backend.Traits{Name: "list", Lacks: backend.Lacking(backend.Durability, backend.UniqueWindows)}
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
		b.stores[name] = &store{byID: make(map[string]*message), changed: make(chan struct{})}
	}
	if o.Clock == nil {
		o.Clock = clockwork.NewRealClock()
	}
	q := &Queue{store: b.stores[name], clock: o.Clock, closed: make(chan struct{})}
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

// store is shared by all handles on one name. Its methods are called under its lock.
type store struct {
	mu      sync.Mutex
	now     time.Time // when the lock was taken
	byID    map[string]*message
	all     []*message // by place
	last    uint64     // token or place
	changed chan struct{}
}

type message struct {
	backend.Message
	place    uint64 // in push order; a dead letter has one behind all that were there when it died
	attempts int
	token    uint64 // of its lease, 0 for none
	until    time.Time
	reason   string
	died     time.Time // zero unless it is dead
}

func (m *message) dead() bool { return !m.died.IsZero() }

func (s *store) leased(m *message) bool { return m.token != 0 && m.until.After(s.now) }

func (s *store) add(m *message) {
	s.last++
	m.place, s.byID[m.ID] = s.last, m
	s.all = append(s.all, m)
}

func (s *store) remove(m *message) {
	delete(s.byID, m.ID)
	i, _ := slices.BinarySearchFunc(s.all, m.place, func(m *message, place uint64) int { return cmp.Compare(m.place, place) })
	s.all = slices.Delete(s.all, i, i+1)
}

// held does something to the message of a lease that is in force.
func (s *store) held(l backend.Lease, do func(*message)) error {
	m := s.byID[l.ID]
	if m == nil || !s.leased(m) || l.Token != (backend.Token{Lo: m.token}) {
		return backend.ErrLeaseLost
	}
	do(m)
	return nil
}

// waiting does something to a message that is neither leased nor dead.
func (s *store) waiting(id string, do func(*message)) error {
	m := s.byID[id]
	switch {
	case m == nil || m.dead():
		return backend.ErrNotFound
	case s.leased(m):
		return backend.ErrInFlight
	}
	do(m)
	return nil
}

// onDead applies do to a dead letter.
func (s *store) onDead(id string, do func(*message)) error {
	m := s.byID[id]
	if m == nil || !m.dead() {
		return backend.ErrNotFound
	}
	do(m)
	return nil
}
