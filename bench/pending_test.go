package bench

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
)

// fill pushes n messages with the due times that the function gives and returns their ids,
// as far as there is room in ids.
func fill(b *testing.B, q delayq.Queue, n int, due func() time.Time) (ids []string) {
	b.Helper()
	ms := make([]delayq.Message, 1000)
	for ; n > 0; n -= len(ms) {
		ms = ms[:min(n, len(ms))]
		for i := range ms {
			ms[i] = delayq.Message{Body: load.Body, Due: due()}
		}
		pushed, err := q.PushBatch(context.Background(), ms)
		load.Must(b, err)
		ids = append(ids, pushed...)
	}
	return ids
}

// size is how many messages to measure with: fewer on a server when a run is only to show that
// the benchmarks work.
func (t target) size(full, short int) int {
	if t.inProcess {
		return full
	}
	return t.atMost(load.UnlessShort(full, short))
}

func (t target) atMost(n int) int {
	if t.most > 0 {
		return min(n, t.most)
	}
	return n
}

// farAhead is a random due time of the day that begins in an hour.
func farAhead(now time.Time) func() time.Time {
	r := newRand()
	return func() time.Time {
		return now.Add(time.Hour + time.Duration(r.Int64N(int64(24*time.Hour))))
	}
}

// newRand gives every run the same numbers.
func newRand() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }
