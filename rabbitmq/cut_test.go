package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
)

// TestConnectionsCut cuts both connections again and again under pushes and acks. What was pushed
// comes, what was acknowledged does not come again, and no ack settles another message.
func TestConnectionsCut(t *testing.T) {
	cuts := 1000
	if !testenv.Runs(t, testenv.All) {
		cuts = 50
	}
	server := testenv.SharedRabbitMQ(t)
	proxy := testenv.Proxy(t, server.Addr())
	q := open(t, through(server.URL(), server, proxy))
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
	defer stop()
	c := &cutBook{t: t, q: q, pushed: make(map[string]bool), came: make(map[string]int), acked: make(map[string]int)}
	pushing, stopPushing := context.WithCancel(ctx)
	var pushers, takers sync.WaitGroup
	for i := range 4 {
		pushers.Go(func() { c.push(pushing, i) })
		takers.Go(func() { c.take(ctx) })
	}
	for proxy.Connections() < cuts {
		time.Sleep(rand.N(300 * time.Millisecond))
		proxy.CloseAll()
	}
	stopPushing()
	pushers.Wait()
	await(t, "all that was pushed", func() bool { return c.missing() == 0 })
	stop()
	takers.Wait()
	t.Logf("%d connections; %d messages pushed, %d handed out, %d of them more than once; %d acks failed; as these attempts some came again after an ack: %v",
		proxy.Connections(), len(c.pushed), len(c.came), c.repeated(), c.failed, c.resurrected)
	// What is given back is published and then acknowledged: a break between the two makes two of it.
	// And a channel of a quorum queue that has some dozens of acks under way may lose further ones. It
	// stays a handful among tens of thousands.
	if len(c.resurrected) > len(c.pushed)/10_000 {
		t.Errorf("%d messages came again after an ack that had succeeded", len(c.resurrected))
	}
}

// through is the URL of a broker behind a proxy.
func through(url string, server *testenv.RabbitServer, proxy *testenv.FaultProxy) string {
	return replaceOnce(url, server.Addr(), proxy.Addr())
}

type cutBook struct {
	t *testing.T
	q backend.Queue

	mu          sync.Mutex
	pushed      map[string]bool
	came, acked map[string]int
	failed      int
	resurrected []int // the attempts
}

func (c *cutBook) push(ctx context.Context, worker int) {
	for i := 0; ctx.Err() == nil; i++ {
		ms := batch(fmt.Sprintf("%d-%d", worker, i), 5, rand.N(30*time.Millisecond))
		errs := c.q.Schedule(ctx, ms)
		c.mu.Lock()
		for j := range ms {
			if errs == nil || errs[j] == nil {
				c.pushed[ms[j].ID] = true
			}
		}
		c.mu.Unlock()
	}
}

func (c *cutBook) take(ctx context.Context) {
	for ctx.Err() == nil {
		ds, err := c.q.Receive(ctx, 10, time.Minute)
		if err != nil {
			continue
		}
		c.mu.Lock()
		for _, d := range ds {
			c.came[d.ID]++
			if c.acked[d.ID] > 0 {
				c.resurrected = append(c.resurrected, d.Attempt)
			}
		}
		c.mu.Unlock()
		time.Sleep(rand.N(3 * time.Millisecond))
		errs := c.q.Ack(ctx, leases(ds))
		c.mu.Lock()
		for i, d := range ds {
			if errs == nil || errs[i] == nil {
				c.acked[d.ID]++
			} else {
				c.failed++
			}
		}
		c.mu.Unlock()
	}
}

func (c *cutBook) missing() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.pushed {
		if c.came[id] == 0 {
			n++
		}
	}
	return n
}

func (c *cutBook) repeated() (n int) {
	for _, times := range c.came {
		if times > 1 {
			n++
		}
	}
	return n
}

// TestStaleAck settles under a lease of a connection that broke, while the new one has a delivery
// of the same tag.
func TestStaleAck(t *testing.T) {
	t.Parallel()
	ctx := deadline(t, patience)
	server := testenv.SharedRabbitMQ(t)
	proxy := testenv.Proxy(t, server.Addr())
	q := open(t, through(server.URL(), server, proxy))
	must(t, q.Schedule(ctx, message("a", 0))...)
	old := receiveOne(ctx, t, q, "a")
	proxy.CloseAll()
	again := receiveOne(ctx, t, q, "a")
	if again.Token.Lo != old.Token.Lo || again.Attempt != 2 {
		t.Errorf("got %+v after %+v; want the same tag as attempt 2", again, old)
	}
	for what, errs := range map[string][]error{
		"ack":  q.Ack(ctx, []backend.Lease{old.Lease()}),
		"nack": q.Nack(ctx, []backend.Return{{Lease: old.Lease()}}),
		"dead": q.Dead(ctx, []backend.DeadLetterRequest{{Lease: old.Lease()}}),
	} {
		if !errors.Is(errs[0], backend.ErrLeaseLost) {
			t.Errorf("%s: %v", what, errs)
		}
	}
	ack(ctx, t, q, again)
	nothing(t, q, 200*time.Millisecond)
}

// TestBlackHole has the broker vanish without a word. Calls end with their contexts, and go on
// afterwards.
func TestBlackHole(t *testing.T) {
	server := testenv.SharedRabbitMQ(t)
	proxy := testenv.Proxy(t, server.Addr())
	q := open(t, through(server.URL(), server, proxy))
	must(t, q.Schedule(t.Context(), message("a", 0))...)
	a := receiveOne(deadline(t, patience), t, q, "a")
	proxy.Blackhole(true)
	for what, call := range map[string]func(context.Context) error{
		"push":    func(ctx context.Context) error { return q.Schedule(ctx, message("b", 0))[0] },
		"receive": func(ctx context.Context) error { _, err := q.Receive(ctx, 1, time.Minute); return err },
		"ack":     func(ctx context.Context) error { return q.Ack(ctx, []backend.Lease{a.Lease()})[0] },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		began := time.Now()
		if err := call(ctx); err == nil || time.Since(began) > time.Second {
			t.Errorf("%s: %v after %v", what, err, time.Since(began))
		}
		cancel()
	}
	proxy.Blackhole(false)
	await(t, "a push", func() bool { return q.Schedule(deadline(t, patience), message("c", 0))[0] == nil }) // the first may meet the break
	seen := map[string]bool{}
	await(t, "message c", func() bool {
		ds, err := q.Receive(deadline(t, patience), 1, time.Minute)
		must(t, err)
		seen[ds[0].ID] = true
		_ = q.Ack(deadline(t, patience), leases(ds))
		return seen["c"]
	})
}

// TestCutCalls cuts the connections after each reply to a call in turn. The error says that the
// store is unavailable or the outcome unknown. Without the latter nothing was changed.
func TestCutCalls(t *testing.T) {
	testenv.In(t, testenv.All)
	const most = 24 // replies that a call may need
	server := testenv.SharedRabbitMQ(t)
	proxy := testenv.Proxy(t, server.Addr())
	b := newBackend(t, through(server.VhostURL(server.Vhost(t)), server, proxy))
	for what, call := range map[string]func(context.Context, backend.Queue) error{
		"open": func(ctx context.Context, _ backend.Queue) error {
			q, err := b.Open(ctx, "another", quiet())
			if err == nil {
				err = q.Close()
			}
			return err
		},
		"list": func(ctx context.Context, q backend.Queue) error { _, _, err := q.ListDead(ctx, "", 10); return err },
		"redrive": func(ctx context.Context, q backend.Queue) error {
			return errors.Join(q.Redrive(ctx, []string{"dead-0"})...)
		},
		"delete": func(ctx context.Context, q backend.Queue) error {
			return errors.Join(q.DeleteDead(ctx, []string{"dead-0"})...)
		},
	} {
		t.Run(what, func(t *testing.T) {
			failed := 0
			for replies := range most {
				ctx := deadline(t, 60*time.Second)
				q := openOn(t, b, fmt.Sprint(what, replies))
				kill(ctx, t, q, 1)
				proxy.StallAfter(replies)
				done := make(chan error, 1)
				go func() { done <- call(ctx, q) }()
				select {
				case err := <-done:
					proxy.Resume()
					must(t, err)
					t.Logf("%d of %d cuts failed", failed, replies)
					return
				case <-time.After(300 * time.Millisecond):
				}
				proxy.CloseAll()
				proxy.Resume()
				err := <-done
				unknown := errors.Is(err, backend.ErrOutcomeUnknown)
				if err != nil {
					failed++
				}
				if err != nil && !unknown && !errors.Is(err, backend.ErrUnavailable) {
					t.Errorf("cut after %d replies: %v", replies, err)
				}
				if err != nil && !unknown && what != "open" {
					must(t, call(ctx, q)) // its letter is still there
				}
				must(t, q.Close())
			}
		})
	}
}
