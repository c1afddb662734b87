package bench

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
)

// BenchmarkProcesses measures one queue that several processes serve at once: backends that each
// have a client, a subscription and a fetcher of their own, here all in this process.
//
//	msgs/s      burst: messages due at one instant, from then to the last ack, 32 workers
//	            altogether
//	trips/msg   paced: round trips to claim a message when 2,000 a second fall due
//
// Processes that share a queue race for each message; trips/msg shows what that costs the server.
func BenchmarkProcesses(b *testing.B) {
	overRedis(b, func(b *testing.B, t target) {
		for _, clients := range []int{1, 8} {
			b.Run("clients="+strconv.Itoa(clients), func(b *testing.B) {
				crew := newCrew(b, t, clients)
				crew.burst(b, t.size(50_000, 2_000))
				crew.paced(b, t.size(10_000, 1_000))
				load.OnePass(b)
			})
		}
	})
}

// A crew is the processes that serve one queue.
type crew struct {
	queues []delayq.Queue
	counts []*sent
	pusher delayq.Queue // a process that only pushes
}

func newCrew(b *testing.B, t target, clients int) *crew {
	server := load.OwnRedis(b)
	c := new(crew)
	for range clients {
		store, count := t.connect(b, server)
		c.queues = append(c.queues, open(b, store, "bench"))
		c.counts = append(c.counts, count)
	}
	store, _ := t.connect(b, server)
	c.pusher = open(b, store, "bench")
	return c
}

// trips is how often the servers of the queue went to Redis.
func (c *crew) trips() (n int64) {
	for _, count := range c.counts {
		n += count.trips.Load()
	}
	return n
}

func (c *crew) burst(b *testing.B, messages int) {
	due := time.Now().Add(window(3 * time.Second))
	t := load.Burst(messages, due)
	load.PushBatches(b, c.pusher, t.Messages(), delayq.MaxBatch, 1)
	wait := awaiting(b, t, load.Consume(b, t.Handle, c.queues...), c.pusher, 0)
	if time.Now().After(due) {
		b.Log("the pushes took too long: the rate is too low")
	}
	wait()
	b.ReportMetric(float64(messages)/time.Since(due).Seconds(), "msgs/s")
}

// paced takes messages without settling them, so that all trips are for claims.
func (c *crew) paced(b *testing.B, messages int) {
	first := time.Now().Add(window(3 * time.Second))
	due := make([]time.Time, messages)
	for i := range due {
		due[i] = first.Add(time.Duration(i) * load.Interval)
	}
	t := load.NewTally(due)
	load.PushBatches(b, c.pusher, t.Messages(), delayq.MaxBatch, 1)
	time.Sleep(time.Until(first))
	before := c.trips()
	ds := c.take(b, t)
	b.ReportMetric(float64(c.trips()-before)/float64(messages), "trips/msg")
	t.Outcome().MustHold(b, b.Name())
	load.Must(b, c.settle(ds))
	mustHold(b, c.pusher, 0)
}

// take receives with each queue until all messages have come.
func (c *crew) take(b *testing.B, t *load.Tally) [][]*delayq.Delivery {
	taken := make([][]*delayq.Delivery, len(c.queues))
	stop := load.Until(b, len(c.queues), func(ctx context.Context, i int) error {
		for ctx.Err() == nil {
			ds, _ := c.queues[i].ReceiveBatch(ctx, 100)
			for _, d := range ds {
				t.Handle(d)
			}
			taken[i] = append(taken[i], ds...)
		}
		return nil
	})
	t.Wait()
	stop()
	return taken
}

func (c *crew) settle(taken [][]*delayq.Delivery) error {
	for i, q := range c.queues {
		for ds := range slices.Chunk(taken[i], delayq.MaxBatch) {
			if err := q.AckBatch(context.Background(), ds); err != nil {
				return err
			}
		}
	}
	return nil
}
