package peers

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
)

const singly, inBatches, batchesAtOnce = "single/", "batch/", "batches/"

// BenchmarkPushPeers measures pushes of 100 bytes that are due in an hour, in msgs/s.
//
//	single/…  256 goroutines, a call a message; goal for zsetpoll: 2, against asynq and
//	          asynq-tuned
//	batch/…   one goroutine that has 100 messages at a time; goal for zsetpoll: 5, although that
//	          is against asynq from 256 goroutines, which keep the server busy: one goroutine and
//	          the server wait for each other. Peers that know no batches push one by one.
//	batches/… 8 goroutines that have 100 messages at a time each; goal for zsetpoll: 5. Peers that know no batches have done
//	          in single/ what they can.
//
// msgs/s is the median of the rounds, least-msgs/s and most-msgs/s are their spread, and /asynq is
// the median of how many times as fast as asynq from 256 goroutines a side was in a round.
func BenchmarkPushPeers(b *testing.B) {
	const goroutines, few, batch = 256, 8, 100
	describe(b)
	messages := load.UnlessShort(20_000, 500)
	sides := load.NewRace()
	cs := takePart(b, pushes)
	warmUp(b, cs)
	for range load.UnlessShort(3, 1) {
		for _, c := range cs {
			n := c.upTo(messages)
			sides.Run(singly+c.name, n, func() { pushSingly(b, c, n, goroutines) })
			c.isEmptied(b, n)
			if c.oneByOne { // a round trip a message takes long
				n /= 4
			}
			sides.Run(inBatches+c.name, n, func() { pushBatches(b, c, n, 1, batch) })
			c.isEmptied(b, n)
			if c.batches() {
				sides.Run(batchesAtOnce+c.name, n, func() { pushBatches(b, c, n, few, batch) })
				c.isEmptied(b, n)
			}
		}
	}
	report(b, sides, nothing, singly+"asynq", singly+"asynq-tuned")
}

// warmUp opens the connections.
func warmUp(b *testing.B, cs []*contestant) {
	b.Helper()
	for _, c := range cs {
		n := c.upTo(1000)
		pushSingly(b, c, n, 256)
		c.isEmptied(b, n)
	}
}

// isEmptied checks how many messages there are, and removes them.
func (c *contestant) isEmptied(b *testing.B, want int) {
	b.Helper()
	c.mustHaveLeft(b, want)
	c.clear(b)
}

func pushSingly(b *testing.B, c *contestant, n, goroutines int) {
	b.Helper()
	if f, ok := c.system.(foreigner); ok {
		f.pushMany(b, n, goroutines)
		return
	}
	m := delayq.Message{Body: load.Body, Due: time.Now().Add(time.Hour)}
	load.Calls(b, n, goroutines, func(int, int) error { return c.push(context.Background(), m) })
}

func pushBatches(b *testing.B, c *contestant, n, goroutines, size int) {
	b.Helper()
	if f, ok := c.system.(foreigner); ok {
		f.pushMany(b, n, goroutines)
		return
	}
	ms := slices.Repeat([]delayq.Message{{Body: load.Body, Due: time.Now().Add(time.Hour)}}, n)
	load.Batches(b, ms, size, goroutines, c.pushAll)
}

// batches tells whether several goroutines can push batches.
func (c *contestant) batches() bool {
	_, foreign := c.system.(foreigner)
	return !foreign && !c.oneByOne
}
