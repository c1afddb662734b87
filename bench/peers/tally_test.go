package peers

import (
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// patience is how long nothing may come before missing messages count as lost.
const patience = 30 * time.Second

// A tally records messages that carry their number. Times are of the wall clock, by which stores
// decide.
type tally struct {
	due  []time.Time
	late []time.Duration // by number, set once; negative for an early one
	seen []atomic.Bool

	left, twice atomic.Int64

	begin sync.Once
	first time.Time     // when the first arrived
	done  chan struct{} // closed with the last one
}

// outcome is the lateness of delivered messages, and the counts of lost and repeated ones.
type outcome struct {
	late        []time.Duration
	twice, lost int
}

func (o outcome) early() (n int) {
	for _, l := range o.late {
		if l < 0 {
			n++
		}
	}
	return n
}

func (o outcome) and(other outcome) outcome {
	return outcome{append(o.late, other.late...), o.twice + other.twice, o.lost + other.lost}
}

// report says how many of the messages came early, in shares of one.
func (o outcome) report(b *testing.B) {
	b.ReportMetric(float64(o.early())/float64(max(len(o.late), 1)), "early/op")
	b.ReportMetric(float64(o.lost), "lost")
	b.ReportMetric(float64(o.twice), "twice")
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
	if t.left.Add(-1) == 0 {
		close(t.done)
	}
}

// wait returns when all have arrived, or none for long after the last was due.
func (t *tally) wait() {
	last := slices.MaxFunc(t.due, time.Time.Compare)
	for left := t.left.Load(); ; left = t.left.Load() {
		select {
		case <-t.done:
			return
		case <-time.After(patience + time.Until(last)):
			last = time.Now()
			if t.left.Load() == left {
				return
			}
		}
	}
}

func (t *tally) outcome() outcome {
	o := outcome{lost: int(t.left.Load()), twice: int(t.twice.Load())}
	for i := range t.seen {
		if t.seen[i].Load() {
			o.late = append(o.late, t.late[i])
		}
	}
	return o
}
