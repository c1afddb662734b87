package bench

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
)

// BenchmarkCancel measures cancelling a message among a million pending ones, in ns per call. The
// ids are random. After each 10,000 the queue is filled up again, which is not counted.
func BenchmarkCancel(b *testing.B) {
	overTargets(b, func(b *testing.B, t target) {
		if !cancels(b, t) {
			b.Skip("the backend cannot cancel")
		}
		pending := t.size(1_000_000, 10_000)
		b.Run("pending="+strconv.Itoa(pending), func(b *testing.B) { cancelAmong(b, t.queue(b), pending) })
	})
}

func cancels(b *testing.B, t target) bool {
	store := t.open(b)
	defer func() { load.Must(b, store.Close()) }()
	q, err := delayq.New(context.Background(), "bench", delayq.WithBackend(store), load.Quiet, delayq.Require(delayq.Cancelling))
	if err == nil {
		load.Must(b, q.Close())
	}
	return err == nil
}

func cancelAmong(b *testing.B, q delayq.Queue, pending int) {
	turn := min(10_000, pending/10)
	due := farAhead(time.Now())
	ids := fill(b, q, pending, due)
	shuffle := newRand()
	var took time.Duration
	for b.Loop() {
		b.StopTimer()
		shuffle.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		b.StartTimer()
		start := time.Now()
		cancelAll(b, q, ids[:turn])
		took += time.Since(start)
		b.StopTimer()
		copy(ids, fill(b, q, turn, due))
		b.StartTimer()
	}
	mustHold(b, q, pending)
	b.ReportMetric(float64(took)/float64(b.N*turn), "ns/op")
}

func cancelAll(b *testing.B, q delayq.Queue, ids []string) {
	ctx := context.Background()
	for _, id := range ids {
		load.Must(b, q.Cancel(ctx, id))
	}
}
