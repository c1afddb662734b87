// Package tombstone keeps tombstones for package rabbitmq in the memory of one process: for tests,
// and for queues of a single process. Package redistomb shares them between processes.
package tombstone

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/rabbitmq"
)

// Memory is a store in memory. When its process ends, cancelled messages that are still in the
// broker come after all. It takes up to 300 bytes for each cancellation that it remembers, each
// message in flight, and each recently settled message.
type Memory struct {
	mu      sync.Mutex
	records map[place]*record
	sweepAt int   // number of records that starts a sweep
	last    int64 // stamp
}

var _ rabbitmq.Tombstones = (*Memory)(nil)

type place struct{ queue, id string }

// A record is about the messages of an id, while it lasts. Unknown stamps are 0.
type record struct {
	cancelled, settled int64  // up to there
	enrolled           int64  // the last
	holds              []hold // seldom more than one
	lasts              time.Time
}

type hold struct {
	token string
	end   time.Time
}

// leastSweep is the number of records from which on a sweep is worth its time.
const leastSweep = 1024

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{records: make(map[place]*record), sweepAt: leastSweep} }

// Enroll is as in rabbitmq.Tombstones.
func (m *Memory) Enroll(ctx context.Context, queue string, ids []string) ([]int64, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	stamp := m.stamp(now)
	for _, id := range ids {
		if r := m.find(place{queue, id}, now); r != nil {
			r.enrolled = stamp
		}
	}
	return slices.Repeat([]int64{stamp}, len(ids)), nil
}

// stamp returns a stamp greater than all before. It follows the clock only to be readable.
func (m *Memory) stamp(now time.Time) int64 {
	m.last = max(now.UnixMicro(), m.last+1)
	return m.last
}

// find returns the record of a place, and nil if there is none.
func (m *Memory) find(p place, now time.Time) *record {
	r := m.records[p]
	if r == nil || now.Before(r.lasts) {
		return r
	}
	delete(m.records, p)
	return nil
}

// findOrAdd returns the record of a place, which lasts at least that long.
func (m *Memory) findOrAdd(p place, now time.Time, lasts time.Duration) *record {
	r := m.find(p, now)
	if r == nil {
		m.sweep(now)
		r = new(record)
		m.records[p] = r
	}
	r.lasts = latest(r.lasts, now.Add(lasts))
	return r
}

// sweep drops expired records when there are twice as many records as after the last sweep.
func (m *Memory) sweep(now time.Time) {
	if len(m.records) < m.sweepAt {
		return
	}
	maps.DeleteFunc(m.records, func(_ place, r *record) bool { return !now.Before(r.lasts) })
	m.sweepAt = max(2*len(m.records), leastSweep)
}

// Cancel is as in rabbitmq.Tombstones.
func (m *Memory) Cancel(ctx context.Context, queue string, ids []string, keep time.Duration) []error {
	if err := ctx.Err(); err != nil {
		return backend.FailAll(len(ids), err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	errs, now := make([]error, len(ids)), time.Now()
	for i, id := range ids {
		p := place{queue, id}
		switch r := m.find(p, now); {
		case r.held(now):
			errs[i] = backend.ErrInFlight
		case r.over():
			errs[i] = backend.ErrNotFound
		default:
			m.findOrAdd(p, now, keep).cancelled = m.stamp(now)
		}
	}
	return errs
}

// held reports whether one of the messages is in flight.
func (r *record) held(now time.Time) bool {
	if r == nil {
		return false
	}
	r.holds = slices.DeleteFunc(r.holds, func(h hold) bool { return !now.Before(h.end) })
	return len(r.holds) > 0
}

// over reports whether the last known message is cancelled or settled.
func (r *record) over() bool {
	return r != nil && max(r.cancelled, r.settled) > 0 && max(r.cancelled, r.settled) >= r.enrolled
}

// Take is as in rabbitmq.Tombstones.
func (m *Memory) Take(ctx context.Context, queue string, hs []rabbitmq.Hold, lasts time.Duration) ([]bool, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	cancelled, now := make([]bool, len(hs)), time.Now()
	for i, h := range hs {
		p := place{queue, h.ID}
		if r := m.find(p, now); r != nil && r.cancelled > 0 && h.Stamp <= r.cancelled {
			cancelled[i] = true
			continue
		}
		m.findOrAdd(p, now, lasts).take(h, now.Add(lasts))
	}
	return cancelled, nil
}

func (r *record) take(h rabbitmq.Hold, end time.Time) {
	r.enrolled = max(r.enrolled, h.Stamp)
	for i := range r.holds {
		if r.holds[i].token == h.Token {
			r.holds[i].end = latest(r.holds[i].end, end)
			return
		}
	}
	r.holds = append(r.holds, hold{h.Token, end})
}

func (r *record) release(token string) {
	r.holds = slices.DeleteFunc(r.holds, func(h hold) bool { return h.token == token })
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Release is as in rabbitmq.Tombstones.
func (m *Memory) Release(ctx context.Context, queue string, hs []rabbitmq.Hold) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for _, h := range hs {
		p := place{queue, h.ID}
		r := m.find(p, now)
		if r == nil {
			continue
		}
		r.release(h.Token)
		if r.cancelled == 0 && r.settled == 0 && len(r.holds) == 0 {
			delete(m.records, p)
		}
	}
	return nil
}

// Settle is as in rabbitmq.Tombstones.
func (m *Memory) Settle(ctx context.Context, queue string, hs []rabbitmq.Hold, keep time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for _, h := range hs {
		r := m.findOrAdd(place{queue, h.ID}, now, keep)
		r.release(h.Token)
		r.settled = max(r.settled, h.Stamp, 1) // also a message that was never enrolled
		if r.cancelled == 0 && len(r.holds) == 0 {
			r.holds, r.lasts = nil, now.Add(keep) // a long lease must not make it longer
		}
	}
	return nil
}
