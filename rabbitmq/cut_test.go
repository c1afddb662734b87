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

// TestConnectionsCut cuts both connections again and again under pushes and acks. Every pushed
// message comes, no acknowledged one comes again, and no ack settles another message.
func TestConnectionsCut(t *testing.T) {
	cuts := 1000
	if !testenv.Runs(t, testenv.All) {
		cuts = 50
	}
	url, proxy := behindProxy(t, shared(t))
	q := open(t, url)
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
	defer stop()
	r := newTracker(t, q)
	r.handling, r.cut = 3*time.Millisecond, true
	pushing, stopPushing := context.WithCancel(ctx)
	var pushers, takers sync.WaitGroup
	for i := range 4 {
		pushers.Go(func() {
			for n := 0; pushing.Err() == nil; n++ {
				r.schedule(pushing, batch(fmt.Sprintf("%d-%d", i, n), 5, rand.N(30*time.Millisecond)))
			}
		})
		takers.Go(func() { r.take(ctx, 10) })
	}
	for proxy.Connections() < cuts {
		time.Sleep(rand.N(300 * time.Millisecond))
		proxy.CloseAll()
	}
	stopPushing()
	pushers.Wait()
	await(t, "all pushed messages", func() bool { return r.missing() == 0 })
	stop()
	takers.Wait()
	t.Logf("%d connections; %d messages pushed, %d handed out; came again: %v; %d acks failed; attempts of messages that came after an ack: %v",
		proxy.Connections(), len(r.confirmed), len(r.came), r.again, r.failedAcks, r.resurrected)
	// A message that a handle gives back is published and then acknowledged. A break between the two
	// duplicates it. The channel of a quorum queue may lose acks beyond some dozens in progress. Both
	// concern a few of tens of thousands of messages.
	if len(r.resurrected) > len(r.confirmed)/10_000 {
		t.Errorf("%d messages came again after a successful ack", len(r.resurrected))
	}
}

// TestStaleAck settles a lease of a broken connection, while the new one has a delivery with the
// same tag.
func TestStaleAck(t *testing.T) {
	t.Parallel()
	ctx := deadline(t, patience)
	url, proxy := behindProxy(t, shared(t))
	q := open(t, url)
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
	wantNoMessage(t, q, 200*time.Millisecond)
}

// TestBlackHole drops all packets without closing a connection. Calls end with their contexts, and
// work again afterwards.
func TestBlackHole(t *testing.T) {
	url, proxy := behindProxy(t, shared(t))
	q := open(t, url)
	must(t, q.Schedule(deadline(t, patience), message("a", 0))...)
	a := receiveOne(deadline(t, patience), t, q, "a")
	proxy.Blackhole(true)
	for what, call := range map[string]func(context.Context) error{
		"push":    func(ctx context.Context) error { return q.Schedule(ctx, message("b", 0))[0] },
		"receive": func(ctx context.Context) error { _, err := q.Receive(ctx, 1, time.Minute); return err },
		"ack":     func(ctx context.Context) error { return q.Ack(ctx, []backend.Lease{a.Lease()})[0] },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		began := time.Now()
		if err := call(ctx); err == nil || time.Since(began) > returnsWithin {
			t.Errorf("%s: %v after %v", what, err, time.Since(began))
		}
		cancel()
	}
	proxy.Blackhole(false)
	await(t, "a push", func() bool { return q.Schedule(deadline(t, patience), message("c", 0))[0] == nil }) // the first may fail with the old connection
	seen := map[string]bool{}
	await(t, "message c", func() bool {
		ds, err := q.Receive(deadline(t, patience), 1, time.Minute)
		must(t, err)
		seen[ds[0].ID] = true
		_ = q.Ack(deadline(t, patience), leases(ds))
		return seen["c"]
	})
}

// TestCutCalls cuts the connections after the first reply to a call, after the second, and so on.
// The error matches ErrUnavailable or ErrOutcomeUnknown. Without the latter nothing was changed.
func TestCutCalls(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	const most = 24 // replies that a call may need
	url, proxy := behindProxy(t, vhost(t))
	b := newBackend(t, url)
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
				ctx := deadline(t, patience)
				q := openOn(t, b, fmt.Sprint(what, replies))
				makeDead(ctx, t, q, 1)
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
