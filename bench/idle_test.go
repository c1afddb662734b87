package bench

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
)

// BenchmarkIdle measures the cost of idle queues with a waiting worker each, in commands a second
// (cmds/s) of all of them together; goals: 1 for one queue, 100 for a thousand of one process. It
// begins when each queue has looked at its dead letters, within eleven seconds of its opening; the
// next look is ten minutes later.
func BenchmarkIdle(b *testing.B) {
	overRedis(b, func(b *testing.B, t target) {
		b.Run("queues=1", func(b *testing.B) { idle(b, t, 1, window(5*time.Second)) })
		if !testing.Short() {
			b.Run("queues=1000", func(b *testing.B) { idle(b, t, 1000, 10*time.Second) })
		}
	})
}

func window(full time.Duration) time.Duration { return load.UnlessShort(full, time.Second/2) }

func idle(b *testing.B, t target, queues int, watch time.Duration) {
	store, count := t.connect(b, load.OwnRedis(b))
	ctx, stop := context.WithCancel(context.Background())
	var workers sync.WaitGroup
	for i := range queues {
		q := open(b, store, "idle-"+strconv.Itoa(i))
		workers.Go(func() { waitInVain(ctx, b, q) })
	}
	time.Sleep(window(12 * time.Second)) // the first look at dead letters comes within this time, and is not idling
	before := count.commands.Load()
	time.Sleep(watch)
	b.ReportMetric(float64(count.commands.Load()-before)/watch.Seconds(), "cmds/s")
	load.OnePass(b)
	stop()
	workers.Wait()
}

func waitInVain(ctx context.Context, b *testing.B, q delayq.Queue) {
	if d, err := q.Receive(ctx); err == nil {
		b.Errorf("an empty queue handed out %v", d)
	}
}
