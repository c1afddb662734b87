package zsetpoll_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/zsetpoll"
)

// longLease is a lease that does not end while a test runs.
const longLease = time.Hour

// A tally has the outcome of each message.
type tally struct {
	t  *testing.T
	mu sync.Mutex

	pushed    map[string]bool // false where the push failed, which leaves it open
	delivered map[string]int
	acked     map[string]bool
	unknown   int // acks that failed for lack of a reply
}

func newTally(t *testing.T) *tally {
	return &tally{t: t, pushed: make(map[string]bool), delivered: make(map[string]int), acked: make(map[string]bool)}
}

func (y *tally) pushes(ms []backend.Message, errs []error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for i, m := range ms {
		var err error
		if errs != nil {
			err = errs[i]
		}
		y.pushed[m.ID] = err == nil
		if errors.Is(err, backend.ErrDuplicate) {
			y.t.Errorf("the push of %s met itself: %v", m.ID, err)
		}
	}
}

func (y *tally) deliveries(ds []backend.Delivery) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for _, d := range ds {
		y.delivered[d.ID]++
		if y.delivered[d.ID] > 1 || d.Attempt != 1 || y.acked[d.ID] {
			y.t.Errorf("%s came %d times, attempt %d, acked %v", d.ID, y.delivered[d.ID], d.Attempt, y.acked[d.ID])
		}
	}
}

func (y *tally) acks(ds []backend.Delivery, errs []error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for i, d := range ds {
		switch {
		case errs == nil || errs[i] == nil:
			y.acked[d.ID] = true
		case errors.Is(errs[i], backend.ErrLeaseLost):
			y.t.Errorf("the ack of %s: %v", d.ID, errs[i])
		default:
			y.unknown++
		}
	}
}

// complete reports whether all that is known to be there has come.
func (y *tally) complete() bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	for id, ok := range y.pushed {
		if ok && y.delivered[id] == 0 {
			return false
		}
	}
	return true
}

func (y *tally) check(proxy *testenv.FaultProxy) {
	y.mu.Lock()
	defer y.mu.Unlock()
	lost, failed := 0, 0
	for id, ok := range y.pushed {
		switch {
		case !ok:
			failed++
		case y.delivered[id] == 0:
			lost++
		}
	}
	if lost > 0 {
		y.t.Errorf("%d messages lost", lost)
	}
	y.t.Logf("%d replies cut: %d pushed, %d of them with an error, %d delivered, %d acked, %d acks without a reply",
		proxy.Cuts(), len(y.pushed), failed, len(y.delivered), len(y.acked), y.unknown)
	if proxy.Cuts() == 0 || failed > len(y.pushed)/20 {
		y.t.Errorf("%d cuts made %d of %d pushes fail", proxy.Cuts(), failed, len(y.pushed))
	}
}

// cutting is a queue whose replies are cut with that probability.
func cutting(t *testing.T, p float64, mode zsetpoll.Mode) (backend.Queue, *testenv.FaultProxy, *redis.Client) {
	t.Helper()
	server := testenv.SharedRedis(t)
	proxy := testenv.Proxy(t, server.Addr())
	client := server.Client(t, func(o *redis.Options) { o.Addr = proxy.Addr() })
	q := open(t, client, zsetpoll.Claims(mode))
	proxy.CutReplies(p)
	return q, proxy, server.Client(t)
}

const pushers = 32

// pushAll pushes n messages, a fifth of them one by one.
func pushAll(ctx context.Context, q backend.Queue, y *tally, n int) {
	var wg sync.WaitGroup
	for w := range pushers {
		wg.Go(func() {
			for i := 0; i < n/pushers; {
				size := min(100, n/pushers-i)
				if i < n/pushers/5 {
					size = 1
				}
				ms := make([]backend.Message, size)
				for j := range ms {
					ms[j] = message(fmt.Sprintf("%d-%d", w, i), 0)[0]
					i++
				}
				y.pushes(ms, q.Schedule(ctx, ms))
			}
		})
	}
	wg.Wait()
}

// drain takes and acks with some workers until done says that nothing is missing.
func drain(ctx context.Context, q backend.Queue, y *tally, done func() bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				ds, err := q.Receive(ctx, 100, longLease)
				if err != nil {
					continue // a lost reply, or the end
				}
				y.deliveries(ds)
				y.acks(ds, q.Ack(context.WithoutCancel(ctx), leases(ds)))
			}
		})
	}
	for ctx.Err() == nil && !done() {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	cancel()
	wg.Wait()
}

// replies is how many messages to push: many in the default mode.
func replies(t *testing.T, mode zsetpoll.Mode) int {
	t.Helper()
	n := 20_000
	if mode == zsetpoll.Script {
		n = 100_000
	}
	if !testenv.Runs(t, testenv.All) {
		n /= 10
	}
	return n
}

// TestRepliesCut cuts replies after the server has executed the command.
func TestRepliesCut(t *testing.T) {
	eachMode(t, func(t *testing.T, mode zsetpoll.Mode) {
		ctx := deadline(t, 80*time.Second)
		q, proxy, raw := cutting(t, 0.01, mode)
		y := newTally(t)
		pushAll(ctx, q, y, replies(t, mode))
		drain(ctx, q, y, y.complete)
		proxy.CutReplies(0)
		y.check(proxy)
		settled(ctx, t, q, y, raw)
	})
}

// TestRepliesCutWhileConsumed has the messages taken and acked at once, also before the pusher
// tries again.
func TestRepliesCutWhileConsumed(t *testing.T) {
	eachMode(t, func(t *testing.T, mode zsetpoll.Mode) {
		ctx := deadline(t, 80*time.Second)
		q, proxy, raw := cutting(t, 0.01, mode)
		y := newTally(t)
		var over atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			pushAll(ctx, q, y, replies(t, zsetpoll.Mover))
			over.Store(true)
		})
		drain(ctx, q, y, func() bool { return over.Load() && y.complete() })
		wg.Wait()
		proxy.CutReplies(0)
		y.check(proxy)
		settled(ctx, t, q, y, raw)
	})
}

// settled compares the tally with the store's counts. Some acks and pushes have returned nothing to
// their callers: their messages are in flight or scheduled.
func settled(ctx context.Context, t *testing.T, q backend.Queue, y *tally, raw *redis.Client) {
	t.Helper()
	left, err := raw.HLen(ctx, "delayq:{"+t.Name()+"}:messages").Result()
	must(t, err)
	stats, err := q.Stats(ctx)
	must(t, err)
	open := 0
	for _, ok := range y.pushed {
		if !ok {
			open++
		}
	}
	if left != stats.Ready+stats.InFlight || left > int64(open+y.unknown) || stats.Scheduled+stats.Dead != 0 {
		t.Errorf("%d bodies are left, %d outcomes were open; stats %+v", left, open+y.unknown, stats)
	}
}
