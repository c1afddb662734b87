package bench

import (
	"context"
	"encoding/binary"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delayq/delayq"
)

// A tally records messages that carry their number. Times are of the wall clock, by which stores
// decide; Go's monotonic clock may drift from it within seconds.
type tally struct {
	due  []time.Time
	late []time.Duration // by number, set once
	seen []atomic.Bool

	left, early, twice atomic.Int64
	done               chan struct{} // closed with the last one
}

func newTally(due []time.Time) *tally {
	t := &tally{
		due:  due,
		late: make([]time.Duration, len(due)),
		seen: make([]atomic.Bool, len(due)),
		done: make(chan struct{}),
	}
	t.left.Store(int64(len(due)))
	return t
}

func (t *tally) message(i int) delayq.Message {
	body := make([]byte, bodySize)
	binary.LittleEndian.PutUint64(body, uint64(i))
	return delayq.Message{Body: body, Due: t.due[i]}
}

func (t *tally) messages() []delayq.Message {
	ms := make([]delayq.Message, len(t.due))
	for i := range ms {
		ms[i] = t.message(i)
	}
	return ms
}

func number(body []byte) int { return int(binary.LittleEndian.Uint64(body)) }

// handle is a handler that records its messages.
func (t *tally) handle(_ context.Context, d *delayq.Delivery) error {
	t.arrived(number(d.Body))
	return nil
}

// arrived notes message i. It is called from many goroutines.
func (t *tally) arrived(i int) {
	late := time.Now().Round(0).Sub(t.due[i].Round(0))
	if t.seen[i].Swap(true) {
		t.twice.Add(1)
		return
	}
	t.late[i] = late
	if late < 0 {
		t.early.Add(1)
	}
	if t.left.Add(-1) == 0 {
		close(t.done)
	}
}

// wait returns when all have arrived. Messages that take a minute more are lost.
func (t *tally) wait(b *testing.B) {
	b.Helper()
	select {
	case <-t.done:
	case <-time.After(time.Minute + time.Until(t.due[len(t.due)-1])):
		b.Fatalf("%d of %d messages are lost", t.left.Load(), len(t.due))
	}
}

// mustHold fails when a message came early or twice.
func (t *tally) mustHold(b *testing.B) {
	b.Helper()
	if e, d := t.early.Load(), t.twice.Load(); e+d > 0 {
		b.Fatalf("%d messages came early, %d twice", e, d)
	}
}
