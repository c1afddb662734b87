// Package list is the smallest backend that keeps every promise but speed: a slice under a mutex. It is here to be read beside
// docs/writing-a-backend.md, and to be copied.
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
		b.stores[name] = &store{byID: make(map[string]*message), changed: make(chan struct{})}
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
	byID     map[string]*message // of both slices
	messages []*message          // in push order
	dead     []*message          // in the order of deaths
	last     uint64              // token or place
	changed  chan struct{}
}

type message struct {
	backend.Message
	place    uint64 // in its slice, by which that is sorted
	attempts int
	token    uint64 // of its lease, 0 for none
	until    time.Time

	dead   bool
	reason string
	died   time.Time
}

func (m *message) leased(now time.Time) bool { return m.token != 0 && m.until.After(now) }

// wake has everyone who waits look again.
func (s *store) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// find returns the message of an id that waits or is leased, or nil.
func (s *store) find(id string) *message {
	if m := s.byID[id]; m != nil && !m.dead {
		return m
	}
	return nil
}

// buried returns the dead letter of an id, or nil.
func (s *store) buried(id string) *message {
	if m := s.byID[id]; m != nil && m.dead {
		return m
	}
	return nil
}

// add puts a message at the end of one of the slices.
func (s *store) add(m *message, dead bool) {
	s.last++
	m.place, m.dead = s.last, dead
	s.byID[m.ID] = m
	if dead {
		s.dead = append(s.dead, m)
	} else {
		s.messages = append(s.messages, m)
	}
}

// remove takes a message out of its slice.
func (s *store) remove(m *message) {
	delete(s.byID, m.ID)
	if m.dead {
		s.dead = without(s.dead, m)
	} else {
		s.messages = without(s.messages, m)
	}
}

func without(ms []*message, gone *message) []*message {
	i, _ := slices.BinarySearchFunc(ms, gone.place, byPlace)
	return slices.Delete(ms, i, i+1)
}

func byPlace(m *message, place uint64) int { return cmp.Compare(m.place, place) }
