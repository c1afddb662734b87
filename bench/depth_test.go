package bench

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
)

type depth struct {
	name    string
	pending int
}

var allDepths = []depth{{"1k", 1_000}, {"10k", 10_000}, {"100k", 100_000}, {"1M", 1_000_000}}

func (t target) depths() (ds []depth) {
	for _, d := range allDepths[:t.size(len(allDepths), 2)] {
		if t.atMost(d.pending) == d.pending {
			ds = append(ds, d)
		}
	}
	return ds
}

// BenchmarkDepth measures what a message costs, push, receive and ack, while others wait.
//
//	due=now     a call a message; the message is due at once, the others between an hour
//	            and a day ahead, so that it passes all of them. Goal for 1M/1k: 1.5.
//	due=random  about 100 messages a call on a virtual clock; each is due at a random
//	            time among the others, and the clock goes on until it is. A message that
//	            lay among a million is in no cache of the processor any more, nor is its
//	            place: no goal.
//
// The depths take turns, so that a slow moment of the machine strikes all of them. It reports
// ns/msg at each depth and 1M/1k, their ratio; ns/op is the mean of all messages.
func BenchmarkDepth(b *testing.B) {
	overTargets(b, func(b *testing.B, t target) {
		b.Run("due=now", func(b *testing.B) { compareDepths(b, newDueNow, t) })
		if t.virtual {
			b.Run("due=random", func(b *testing.B) { compareDepths(b, newDueRandom, t) })
		}
	})
}

// A crowd keeps a queue at its depth. live takes about n messages through their lives and
// returns how many they were.
type crowd interface{ live(b *testing.B, n int) int }

func compareDepths(b *testing.B, open func(*testing.B, target, int) crowd, t target) {
	turn, depths := t.size(1000, 100), t.depths()
	loads := make([]crowd, len(depths))
	for i, d := range depths {
		loads[i] = open(b, t, d.pending)
		loads[i].live(b, turn)
	}
	took := make([]time.Duration, len(depths))
	lived := make([]int, len(depths))
	for b.Loop() {
		for i, l := range loads {
			start := time.Now()
			lived[i] += l.live(b, turn)
			took[i] += time.Since(start)
		}
	}
	reportDepths(b, depths, took, lived)
}

func reportDepths(b *testing.B, depths []depth, took []time.Duration, lived []int) {
	var all time.Duration
	var messages int
	cost := make([]float64, len(depths))
	for i, d := range depths {
		cost[i] = float64(took[i]) / float64(lived[i])
		b.ReportMetric(cost[i], "ns/msg-at-"+d.name)
		all += took[i]
		messages += lived[i]
	}
	last := len(depths) - 1
	b.ReportMetric(cost[last]/cost[0], depths[last].name+"/"+depths[0].name)
	b.ReportMetric(float64(all)/float64(messages), "ns/op")
}

type dueNow struct{ q delayq.Queue }

func newDueNow(b *testing.B, t target, pending int) crowd {
	q := t.queue(b)
	fill(b, q, pending, farAhead(time.Now()))
	return dueNow{q}
}

func (l dueNow) live(b *testing.B, n int) int {
	for range n {
		liveOne(b, l.q)
	}
	return n
}

// dueRandom is the hold model of the literature on priority queues: each message that is
// taken is replaced with one due at a uniformly random moment of the span that begins.
type dueRandom struct {
	q     delayq.Queue
	clock *clockwork.FakeClock
	step  time.Duration // in which about 100 messages become due
	span  time.Duration
	r     *rand.Rand
}

func newDueRandom(b *testing.B, t target, pending int) crowd {
	clock := clockwork.NewFakeClock()
	l := &dueRandom{clock: clock, span: 24 * time.Hour, r: newRand(), q: t.queue(b, delayq.WithClock(clock))}
	// In the steady state a message's remaining time is distributed as the smaller of
	// two uniform ones, and twice as many are due in the next moment as on average.
	start := clock.Now()
	fill(b, l.q, pending, func() time.Time { return start.Add(min(l.ahead(), l.ahead())) })
	l.step = time.Duration(100 * float64(l.span) / float64(2*pending))
	return l
}

func (l *dueRandom) ahead() time.Duration { return time.Duration(l.r.Int64N(int64(l.span))) }

func (l *dueRandom) live(b *testing.B, n int) (lived int) {
	ctx := context.Background()
	for lived < n {
		l.clock.Advance(l.step)
		now := l.clock.Now()
		ds, err := l.q.ReceiveBatch(ctx, delayq.MaxBatch)
		load.Must(b, err)
		ms := make([]delayq.Message, len(ds))
		for i, d := range ds {
			mustBeWhole(b, l.q, d, now)
			ms[i] = delayq.Message{Body: load.Body, Due: now.Add(l.ahead())}
		}
		load.Must(b, l.q.AckBatch(ctx, ds))
		_, err = l.q.PushBatch(ctx, ms)
		load.Must(b, err)
		lived += len(ds)
	}
	return lived
}
