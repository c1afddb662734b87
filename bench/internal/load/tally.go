package load

import (
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delayq/delayq"
)

// A Tally records messages that carry their number. Times are of the wall clock, by which stores
// decide; Go's monotonic clock may drift from it within seconds.
type Tally struct {
	Due   []time.Time
	First time.Time // when the first message arrived

	late []time.Duration // by number, set once; negative for an early one
	seen []atomic.Bool

	left, twice atomic.Int64
	begin       sync.Once
	done        chan struct{} // closed with the last one
}

// NewTally expects a message for each due time.
func NewTally(due []time.Time) *Tally {
	t := &Tally{
		Due: due, late: make([]time.Duration, len(due)), seen: make([]atomic.Bool, len(due)), done: make(chan struct{}),
	}
	t.left.Store(int64(len(due)))
	return t
}

// Burst expects n messages that are due at one instant.
func Burst(n int, due time.Time) *Tally { return NewTally(slices.Repeat([]time.Time{due}, n)) }

// Message returns message i.
func (t *Tally) Message(i int) delayq.Message {
	body := make([]byte, BodySize)
	binary.LittleEndian.PutUint64(body, uint64(i))
	return delayq.Message{Body: body, Due: t.Due[i]}
}

// Messages returns all messages.
func (t *Tally) Messages() []delayq.Message {
	ms := make([]delayq.Message, len(t.Due))
	for i := range ms {
		ms[i] = t.Message(i)
	}
	return ms
}

// Handle records a delivery. It is called from many goroutines.
func (t *Tally) Handle(d *delayq.Delivery) { t.Arrived(d.Body) }

// Arrived records a message by its body. It is called from many goroutines.
func (t *Tally) Arrived(body []byte) {
	now := time.Now()
	t.begin.Do(func() { t.First = now })
	i := int(binary.LittleEndian.Uint64(body))
	if t.seen[i].Swap(true) {
		t.twice.Add(1)
		return
	}
	t.late[i] = now.Round(0).Sub(t.Due[i].Round(0))
	if t.left.Add(-1) == 0 {
		close(t.done)
	}
}

// Wait returns when all have arrived, or none for long after the last was due.
func (t *Tally) Wait() {
	last := slices.MaxFunc(t.Due, time.Time.Compare)
	for left := t.left.Load(); ; left = t.left.Load() {
		select {
		case <-t.done:
			return
		case <-time.After(Patience + time.Until(last)):
			last = time.Now()
			if t.left.Load() == left {
				return
			}
		}
	}
}

// Outcome returns what has come so far.
func (t *Tally) Outcome() Outcome {
	o := Outcome{Lost: int(t.left.Load()), Twice: int(t.twice.Load())}
	for i := range t.seen {
		if t.seen[i].Load() {
			o.Late = append(o.Late, t.late[i])
		}
	}
	return o
}

// An Outcome is the lateness of delivered messages, and the counts of lost and repeated ones.
type Outcome struct {
	Late        []time.Duration
	Twice, Lost int
}

// Early counts the messages that came before they were due.
func (o Outcome) Early() (n int) {
	for _, l := range o.Late {
		if l < 0 {
			n++
		}
	}
	return n
}

// And returns both outcomes as one.
func (o Outcome) And(other Outcome) Outcome {
	return Outcome{append(o.Late, other.Late...), o.Twice + other.Twice, o.Lost + other.Lost}
}

// MustHold fails when a message came early, twice or not at all.
func (o Outcome) MustHold(tb testing.TB, side string) {
	tb.Helper()
	if early := o.Early(); early+o.Twice+o.Lost > 0 {
		tb.Fatalf("%s: %d messages came early, %d twice and %d never", side, early, o.Twice, o.Lost)
	}
}

// Report reports how many of the messages came early, in shares of one.
func (o Outcome) Report(b *testing.B) {
	b.ReportMetric(float64(o.Early())/float64(max(len(o.Late), 1)), "early/op")
	b.ReportMetric(float64(o.Lost), "lost")
	b.ReportMetric(float64(o.Twice), "twice")
}
