package peers

import (
	"testing"
	"time"

	"github.com/delayq/delayq/bench/internal/load"
	"github.com/delayq/delayq/bench/internal/raw"
)

// BenchmarkDrainPeers measures 100,000 messages that are due at one instant, with 32 workers that
// do nothing.
//
//	msgs/s         from that instant until the store has the last acknowledgement, the better of
//	               two rounds; least-msgs/s and most-msgs/s are their spread. Goals: 5 for
//	               zsetpoll and 3 for redisson, against asynq and asynq-tuned, a server of 32
//	               workers each; there is none against four servers
//	steady-msgs/s  from the first message that a worker gets, so without what a peer waits before
//	               it looks: the reading that is kindest to the peer
//	early/op       the share of the messages that came early
//	lost, twice    messages that did not come, and that came again
//	unfinished     messages that were not waited for
//
// The instant is a whole second, for asynq knows no other. With its default settings it looks every
// 5 s, as river does: the rounds begin at times spread over these. beanstalkd counts whole seconds
// from each push, so that its messages are due within a second; its workers come at the end of
// that. Slow sides that no goal is about have fewer messages.
func BenchmarkDrainPeers(b *testing.B) {
	describe(b)
	messages, rounds := load.UnlessShort(100_000, 1000), load.UnlessShort(2, 1)
	whole, steady := load.NewRace(), load.NewRace()
	bursts, all := make(map[string]burst), make(map[string]load.Outcome)
	cs := takePart(b, drains)
	leads := make(map[string]time.Duration)
	for round := range rounds {
		for _, c := range cs {
			ahead := max(c.looks*time.Duration(2*round+1)/time.Duration(2*rounds), 300*time.Millisecond)
			load.Turn(func() {
				d := c.drain(b, c.upTo(messages), leads, ahead)
				whole.Note(c.name, d.whole)
				steady.Note(c.name, d.steady)
				bursts[c.name], all[c.name] = d, all[c.name].And(d.Outcome)
			})
		}
	}
	report(b, whole, func(b *testing.B, side string) {
		b.ReportMetric(steady.Median(side), "steady-msgs/s")
		b.ReportMetric(float64(bursts[side].unfinished), "unfinished")
		all[side].Report(b)
		raw.Arrivals(b, "", bursts[side].Late)
	}, "asynq", "asynq-tuned")
}

// A burst is how one round went.
type burst struct {
	load.Outcome
	unfinished    int
	whole, steady float64 // msgs/s
}

// timed computes the rates from when the first and the last message had come.
func (d *burst) timed(due, first, last time.Time) {
	n := float64(len(d.Late))
	d.whole, d.steady = n/last.Sub(due).Seconds(), n/last.Sub(first).Seconds()
}

// drain pushes messages, and lets the workers in that long before they are due. It begins anew,
// with more time, when the pushes took too long.
func (c *contestant) drain(b *testing.B, messages int, leads map[string]time.Duration, ahead time.Duration) burst {
	b.Helper()
	if _, known := leads[c.name]; !known {
		leads[c.name] = c.tryPushes(b, messages)
	}
	for {
		start := time.Now()
		due := start.Add(leads[c.name] + ahead).Truncate(time.Second).Add(time.Second)
		if d, inTime := c.drainBefore(b, messages, due, ahead); inTime {
			return d
		}
		c.clear(b)
		leads[c.name] = 3 * time.Since(start) / 2
	}
}

// tryPushes returns how long it may take to push so many, by a few that it pushes once it has its
// connections.
func (c *contestant) tryPushes(b *testing.B, messages int) time.Duration {
	b.Helper()
	const share = 20
	if _, ok := c.system.(foreigner); ok {
		return 0 // it would be the first to run in its process, and so slow
	}
	due := time.Now().Add(time.Hour)
	c.pushTally(b, load.Burst(messages/share, due))
	start := time.Now()
	c.pushTally(b, load.Burst(messages/share, due))
	took := time.Since(start)
	c.clear(b)
	return share * took * 5 / 4
}

func (c *contestant) drainBefore(b *testing.B, messages int, due time.Time, ahead time.Duration) (_ burst, inTime bool) {
	b.Helper()
	if f, ok := c.system.(foreigner); ok {
		d, inTime := f.drainMany(b, messages, due)
		c.clear(b)
		return d, inTime
	}
	t := load.Burst(messages, due)
	c.pushTally(b, t)
	left := time.Until(due) - ahead
	if left <= 0 {
		return burst{}, false
	}
	if c.coarse {
		left += ahead
	}
	time.Sleep(left) // the load begins at an instant
	return c.drainTally(b, t, due), true
}

func (c *contestant) pushTally(b *testing.B, t *load.Tally) {
	b.Helper()
	load.Batches(b, t.Messages(), 100, 64, c.pushAll)
}

func (c *contestant) drainTally(b *testing.B, t *load.Tally, due time.Time) burst {
	b.Helper()
	stop := c.consume(b, t.Arrived)
	t.Wait()
	d := burst{Outcome: t.Outcome()}
	c.drained(b, d.Lost)
	d.timed(due, t.First, time.Now())
	stop()
	c.keep(b, d.Outcome)
	return d
}
