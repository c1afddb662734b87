package peers

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkPushPeers measures pushes of 100 bytes that are due in an hour, in msgs/s.
//
//	zsetpoll, asynq …            256 goroutines, a call a message; goal for zsetpoll: 2, against asynq and asynq-tuned
//	zsetpoll-batch, asynq-batch  one goroutine that has 100 messages at a time; goal for zsetpoll-batch: 5, although that is
//	                             against asynq from 256 goroutines
func BenchmarkPushPeers(b *testing.B) {
	const goroutines, batch = 256, 100
	sayRedis(b)
	messages := unlessShort(40_000, 1000)
	sides := newRace()
	cs := contest(b, func(p peer) bool { return !p.tweaks })
	warmUp(b, cs)
	for range unlessShort(7, 1) {
		for _, c := range cs {
			sides.run(c.name, messages, func() { pushSingly(b, c, messages, goroutines) })
			c.isEmptied(b, messages)
			few := messages
			if c.oneByOne { // a round trip a message takes long
				few /= 4
			}
			sides.run(c.name+"-batch", few, func() { pushBatches(b, c, few, batch) })
			c.isEmptied(b, few)
		}
	}
	sides.report(b, nothing, "asynq", "asynq-tuned")
}

// warmUp opens the connections.
func warmUp(b *testing.B, cs []contestant) {
	b.Helper()
	for _, c := range cs {
		pushSingly(b, c, 1000, 256)
		c.isEmptied(b, 1000)
	}
}

// isEmptied checks how many messages there are, and removes them.
func (c contestant) isEmptied(b *testing.B, want int) {
	b.Helper()
	c.mustHaveLeft(b, want)
	c.clear(b)
}

func pushSingly(b *testing.B, c contestant, n, goroutines int) {
	b.Helper()
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

func pushBatches(b *testing.B, c contestant, n, size int) {
	b.Helper()
	ms := slices.Repeat([]message{{make([]byte, bodySize), time.Now().Add(time.Hour)}}, n)
	for batch := range slices.Chunk(ms, size) {
		must(b, c.pushAll(context.Background(), batch))
	}
}

// fromMany calls do in that many goroutines, each with its number, and waits for all.
func fromMany(goroutines int, do func(i int)) {
	var all sync.WaitGroup
	for i := range goroutines {
		all.Go(func() { do(i) })
	}
	all.Wait()
}
