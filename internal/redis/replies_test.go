package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/judge"
	"github.com/delayq/delayq/internal/redis/script"
	"github.com/delayq/delayq/internal/testenv"
)

// recorded is a queue whose calls are recorded. The bodies of messages are their numbers.
type recorded struct {
	t   *testing.T
	q   backend.Queue
	log judge.Log
	n   atomic.Uint32 // the last number that was given

	mu      sync.Mutex
	missing map[uint32]bool // pushed and not delivered yet
	early   map[uint32]bool // delivered before the push returned
	pushes  int
	failed  int
}

func (r *recorded) call(c judge.Call, do func(c *judge.Call)) {
	c.Start = time.Now().UnixNano()
	do(&c)
	c.End = time.Now().UnixNano()
	r.log.End(&c)
}

func (r *recorded) push(ctx context.Context, size int) {
	c := judge.Call{Op: judge.Push, Items: make([]judge.Item, size)}
	ms := make([]backend.Message, size)
	for i := range ms {
		c.Items[i].N = r.n.Add(1)
		ms[i].ID = strconv.Itoa(int(c.Items[i].N))
		ms[i].Body = []byte(ms[i].ID)
	}
	r.call(c, func(c *judge.Call) {
		if err := c.SetOutcomes(r.q.Schedule(ctx, ms)); err != nil && !errors.Is(err, script.ErrUnknown) {
			r.t.Errorf("a push returns %v", err)
		}
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, it := range c.Items {
		r.pushes++
		if it.Out != judge.OK {
			r.failed++
		} else if !r.early[it.N] {
			r.missing[it.N] = true
		}
	}
}

// lease is longer than a call takes. The messages of a claim that lost the replies of all its tries come
// after it.
const lease = time.Minute

// receive receives messages and acknowledges them.
func (r *recorded) receive(ctx context.Context) {
	var ds []backend.Delivery
	acks := judge.Call{Op: judge.Ack}
	r.call(judge.Call{Op: judge.Receive, Lease: int64(lease)}, func(c *judge.Call) {
		var err error
		if ds, err = r.q.Receive(ctx, 100, lease); err != nil {
			c.Err = err.Error() // a lost reply, or the end
		}
		for _, d := range ds {
			n, err := strconv.ParseUint(string(d.Body), 10, 32)
			if err != nil {
				r.t.Errorf("a message with the body %q came", d.Body)
			}
			c.Items = append(c.Items, judge.Item{
				N: uint32(n), Out: judge.OK, Attempt: d.Attempt, Token: d.Token, Due: d.Due.UnixNano(), Until: d.Until.UnixNano(),
			})
			acks.Items = append(acks.Items, judge.Item{N: uint32(n), Token: d.Token})
		}
	})
	if len(ds) == 0 {
		return
	}
	r.call(acks, func(c *judge.Call) { _ = c.SetOutcomes(r.q.Ack(context.WithoutCancel(ctx), leases(ds))) })
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, it := range acks.Items {
		r.early[it.N] = true
		delete(r.missing, it.N)
	}
}

// complete reports whether every message has come whose push succeeded.
func (r *recorded) complete() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.missing) == 0
}

// pushAll pushes n messages with 32 pushers, a third of them one by one.
func (r *recorded) pushAll(ctx context.Context, n int) {
	const pushers = 32
	var wg sync.WaitGroup
	for range pushers {
		wg.Go(func() {
			for i := range n / pushers / 3 {
				r.push(ctx, 1)
				if i%5 == 0 {
					r.push(ctx, 10)
				}
			}
		})
	}
	wg.Wait()
}

// consume receives with 8 workers until done.
func (r *recorded) consume(ctx context.Context, done func() bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				r.receive(ctx)
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

// rest receives what is left when no reply is cut any more: messages whose push failed.
func (r *recorded) rest(ctx context.Context) {
	r.consume(ctx, func() bool {
		s, err := r.q.Stats(ctx)
		return err == nil && s.Scheduled+s.Ready == 0
	})
	r.call(judge.Call{Op: judge.Stats}, func(c *judge.Call) {
		s, err := r.q.Stats(ctx)
		must(r.t, err)
		c.Count = s.Scheduled + s.Ready + s.InFlight + s.Dead + s.Quarantined
	})
}

// TestRepliesCut cuts replies after the server has done what was asked. A call whose reply is lost is
// repeated, or says that its outcome is unknown. No message is stored or delivered twice.
func TestRepliesCut(t *testing.T) {
	for _, s := range stores {
		for _, consumed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/consumed=%v", s.name, consumed), func(t *testing.T) {
				t.Parallel()
				testenv.In(t, s.tier)
				cutReplies(t, s, consumed)
			})
		}
	}
}

// cutReplies pushes and consumes one after the other, or with consumed at the same time.
func cutReplies(t *testing.T, s store, consumed bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute) // on a busy machine
	defer cancel()
	server := testenv.Redis(t, testenv.Private())
	proxy := testenv.Proxy(t, server.Addr())
	b := s.open(server.Client(t, func(o *redis.Options) { o.Addr = proxy.Addr() }))
	r := &recorded{t: t, q: openQueue(t, b), missing: make(map[uint32]bool), early: make(map[uint32]bool)}
	n := s.messages
	if !testenv.Runs(t, testenv.All) {
		n /= 4
	}
	proxy.CutReplies(0.01)
	var over atomic.Bool
	var pushing sync.WaitGroup
	pushing.Go(func() { r.pushAll(ctx, n); over.Store(true) })
	if !consumed {
		pushing.Wait()
	}
	r.consume(ctx, func() bool { return over.Load() && r.complete() })
	pushing.Wait()
	if ctx.Err() != nil {
		left, err := r.q.Stats(t.Context())
		t.Fatalf("%d messages have not come; %+v, %v", len(r.missing), left, err)
	}
	proxy.CutReplies(0)
	r.rest(ctx)
	h := &judge.History{Backend: s.name, Traits: b.Traits(), Calls: r.log.Calls(), Drained: true}
	v := judge.Check(h, "early", "lost", "unexpected", "duplicated", "lease", "attempts", "linearizable", "accounting")
	if len(v.Violations) > 0 {
		t.Errorf("%d violations of %v\n%s", len(v.Violations), v.Rules(), judge.Explain(h, v, 2))
	}
	t.Logf("%d replies cut: %d pushed, %d of them with an error; %+v", proxy.Cuts(), r.pushes, r.failed, v.Counts)
	if proxy.Cuts() == 0 || !s.java && r.failed > r.pushes/20 || s.java && r.failed == 0 {
		t.Errorf("%d cuts made %d of %d pushes fail", proxy.Cuts(), r.failed, r.pushes)
	}
}
