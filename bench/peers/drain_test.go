package peers

import (
	"context"
	"slices"
	"testing"
	"time"
)

// BenchmarkDrainPeers measures 100,000 messages that are due at one instant, with 32 workers that do nothing.
//
//	msgs/s         from that instant until the store has the last acknowledgement; goals: 5 for zsetpoll and 3 for
//	               redisson, against asynq and asynq-tuned, a server of 32 workers each; there is none against four servers
//	steady-msgs/s  from the first message that a worker gets, so without what a peer waits before it looks: the reading that is
//	               kindest to the peer
//
// The instant is a whole second, for asynq knows no other. Its default settings look every 5 s: the rounds begin at times
// spread over these.
func BenchmarkDrainPeers(b *testing.B) {
	const look = 5 * time.Second
	sayRedis(b)
	messages, rounds := unlessShort(100_000, 2000), unlessShort(3, 1)
	whole, steady := newRace(), newRace()
	cs := contest(b, inTime)
	leads := make(map[string]time.Duration)
	for round := range rounds {
		ahead := unlessShort(look*time.Duration(2*round+1)/time.Duration(2*rounds), 300*time.Millisecond)
		for _, c := range cs {
			turn(func() {
				d := c.drain(b, messages, leads, ahead)
				whole.note(c.name, d.whole)
				steady.note(c.name, d.steady)
			})
		}
	}
	whole.report(b, func(b *testing.B, side string) {
		b.ReportMetric(steady.median(side), "steady-msgs/s")
	}, "asynq", "asynq-tuned", "asynq-tuned-x4")
}

// drainRates are of one round.
type drainRates struct{ whole, steady float64 }

// drain pushes messages, and lets the workers in that long before they are due. It begins anew, with more time, when the
// pushes took too long.
func (c contestant) drain(b *testing.B, messages int, leads map[string]time.Duration, ahead time.Duration) drainRates {
	b.Helper()
	for {
		due := time.Now().Add(leads[c.name] + ahead).Truncate(time.Second).Add(time.Second)
		t := newTally(slices.Repeat([]time.Time{due}, messages))
		c.pushTally(b, t)
		if left := time.Until(due) - ahead; left > 0 {
			time.Sleep(left) // the load begins at an instant
			return c.drainTally(b, t, due)
		}
		c.clear(b)
		leads[c.name] = 2*leads[c.name] + unlessShort(2*time.Second, 0)
	}
}

func (c contestant) pushTally(b *testing.B, t *tally) {
	b.Helper()
	batches := make(chan []message)
	go func() {
		defer close(batches)
		for batch := range slices.Chunk(t.messages(), 100) {
			batches <- batch
		}
	}()
	fromMany(64, func(int) {
		for batch := range batches {
			if err := c.pushAll(context.Background(), batch); err != nil {
				b.Error(err)
			}
		}
	})
}

func (c contestant) drainTally(b *testing.B, t *tally, due time.Time) drainRates {
	b.Helper()
	stop := c.consume(b, t.arrived)
	t.wait(b)
	c.drained(b)
	end := time.Now()
	stop()
	c.keep(b, t)
	n := float64(len(t.due))
	return drainRates{whole: n / end.Sub(due).Seconds(), steady: n / end.Sub(t.first).Seconds()}
}
