package zsetpoll_test

import (
	"context"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/schedule"
	"github.com/delayq/delayq/zsetpoll"
)

// TestRepeatOnManyClients has four clients, as four processes would, push each second. None is
// missing and each comes once.
func TestRepeatOnManyClients(t *testing.T) {
	server := testenv.SharedRedis(t)
	ctx, stop := context.WithCancel(redistest.Deadline(t))
	var running sync.WaitGroup
	came := &seconds{counts: make(map[int64]int)}
	first := server.Client(t)
	t.Cleanup(func() { redistest.Wipe(t, first, "delayq:{"+t.Name()+"}:*") })
	for range 4 {
		b := zsetpoll.New(server.Client(t))
		q, err := delayq.New(ctx, t.Name(), delayq.WithBackend(b))
		must(t, err)
		for _, run := range []func() error{
			func() error { return schedule.Repeat(ctx, q, "tick", schedule.Every(time.Second), nil) },
			func() error { return q.Consume(ctx, came.add) },
		} {
			running.Go(func() {
				if err := run(); err != nil {
					t.Error(err)
				}
			})
		}
		t.Cleanup(func() { must(t, q.Close(), b.Close()) })
	}
	await(t, "five seconds in a row", func() bool { return came.inARow() >= 5 })
	stop()
	running.Wait()
	for second, times := range came.counts {
		if times != 1 {
			t.Errorf("the occurrence of %v came %d times", time.Unix(second, 0), times)
		}
	}
}

// seconds counts occurrences by their due times.
type seconds struct {
	mu     sync.Mutex
	counts map[int64]int
}

func (s *seconds) add(_ context.Context, d *delayq.Delivery) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[d.Due.Unix()]++
	return nil
}

// inARow returns how many there are without a gap from the first.
func (s *seconds) inARow() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := int64(math.MaxInt64)
	for second := range s.counts {
		first = min(first, second)
	}
	n := 0
	for s.counts[first+int64(n)] > 0 {
		n++
	}
	return n
}
