package peers

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A tally holds what became of messages that carry their number. Times are of the wall clock, by which stores decide.
type tally struct {
	due  []time.Time
	late []time.Duration // by number, set once; negative for an early one
	seen []atomic.Bool

	left, early, twice atomic.Int64

	begin sync.Once
	first time.Time     // when the first arrived
	done  chan struct{} // closed with the last one
}

func newTally(due []time.Time) *tally {
	t := &tally{due: due, late: make([]time.Duration, len(due)), seen: make([]atomic.Bool, len(due)), done: make(chan struct{})}
	t.left.Store(int64(len(due)))
	return t
}

func (t *tally) message(i int) message {
	body := make([]byte, bodySize)
	binary.LittleEndian.PutUint64(body, uint64(i))
	return message{body, t.due[i]}
}

func (t *tally) messages() []message {
	ms := make([]message, len(t.due))
	for i := range ms {
		ms[i] = t.message(i)
	}
	return ms
}

// arrived notes a message. It is called from many goroutines.
func (t *tally) arrived(body []byte) {
	now := time.Now()
	t.begin.Do(func() { t.first = now })
	i := int(binary.LittleEndian.Uint64(body))
	if t.seen[i].Swap(true) {
		t.twice.Add(1)
		return
	}
	t.late[i] = now.Round(0).Sub(t.due[i].Round(0))
	if t.late[i] < 0 {
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
