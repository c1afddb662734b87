package peers

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
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
	messages := unlessShort(20_000, 500)
	sides := newRace()
	cs := takePart(b, pushes)
	warmUp(b, cs)
	for range unlessShort(3, 1) {
		for _, c := range cs {
			n := c.upTo(messages)
			sides.run(singly+c.name, n, func() { pushSingly(b, c, n, goroutines) })
			c.isEmptied(b, n)
			if c.oneByOne { // a round trip a message takes long
				n /= 4
			}
			sides.run(inBatches+c.name, n, func() { pushBatches(b, c, n, batch) })
			c.isEmptied(b, n)
			if c.batches() {
				sides.run(batchesAtOnce+c.name, n, func() { pushBatchesAtOnce(b, c, n, few, batch) })
				c.isEmptied(b, n)
			}
		}
	}
	sides.report(b, nothing, singly+"asynq", singly+"asynq-tuned")
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
	m := message{make([]byte, bodySize), time.Now().Add(time.Hour)}
	var left atomic.Int64
	left.Store(int64(n))
	fromMany(goroutines, func(int) {
		for left.Add(-1) >= 0 && !b.Failed() {
			if err := c.push(context.Background(), m); err != nil {
				b.Error(err)
			}
		}
	})
}

func pushBatches(b *testing.B, c *contestant, n, size int) {
	b.Helper()
	if f, ok := c.system.(foreigner); ok {
		f.pushMany(b, n, 1)
		return
	}
	ms := slices.Repeat([]message{{make([]byte, bodySize), time.Now().Add(time.Hour)}}, n)
	for batch := range slices.Chunk(ms, size) {
		must(b, c.pushAll(context.Background(), batch))
	}
}

// batches tells whether several goroutines can push batches.
func (c *contestant) batches() bool {
	_, foreign := c.system.(foreigner)
	return !foreign && !c.oneByOne
}

func pushBatchesAtOnce(b *testing.B, c *contestant, n, goroutines, size int) {
	b.Helper()
	ms := slices.Repeat([]message{{make([]byte, bodySize), time.Now().Add(time.Hour)}}, n)
	batches := make(chan []message, n/size+1)
	for batch := range slices.Chunk(ms, size) {
		batches <- batch
	}
	close(batches)
	fromMany(goroutines, func(int) {
		for batch := range batches {
			if err := c.pushAll(context.Background(), batch); err != nil {
				b.Error(err)
			}
		}
	})
}

// fromMany calls do in that many goroutines, each with its number, and waits for all.
func fromMany(goroutines int, do func(i int)) {
	var all sync.WaitGroup
	for i := range goroutines {
		all.Go(func() { do(i) })
	}
	all.Wait()
}
