package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
)

// returnsWithin allows for a busy machine. A call that waits for the broker takes until the
// heartbeat breaks the connection, 15 s after the broker's last byte, or longer.
const returnsWithin = 8 * time.Second

// givenTime is the time limit of calls.
const givenTime = 200 * time.Millisecond

// TestCallsEndWithTheirContext makes each call to a broker that has stopped to reply. The call
// returns when its context expires, and when it is cancelled.
func TestCallsEndWithTheirContext(t *testing.T) {
	url, proxy := behindProxy(t, shared(t))
	b := newBackend(t, url)
	q := openOn(t, b, queueOf(t))
	must(t, q.Schedule(deadline(t, patience), batch("m", 3, 0))...)
	held := leases(receiveAll(deadline(t, patience), t, q, 3))
	proxy.Blackhole(true)
	for what, call := range map[string]func(context.Context) error{
		"open":    func(ctx context.Context) error { _, err := b.Open(ctx, "another", quiet()); return err },
		"push":    func(ctx context.Context) error { return errors.Join(q.Schedule(ctx, message("b", 0))...) },
		"receive": func(ctx context.Context) error { _, err := q.Receive(ctx, 1, time.Minute); return err },
		"ack":     func(ctx context.Context) error { return errors.Join(q.Ack(ctx, held[:1])...) },
		"nack": func(ctx context.Context) error {
			return errors.Join(q.Nack(ctx, []backend.Return{{Lease: held[1]}})...)
		},
		"dead": func(ctx context.Context) error {
			return errors.Join(q.Dead(ctx, []backend.DeadLetterRequest{{Lease: held[2]}})...)
		},
		"list dead":   func(ctx context.Context) error { _, _, err := q.ListDead(ctx, "", 10); return err },
		"redrive":     func(ctx context.Context) error { return errors.Join(q.Redrive(ctx, []string{"x"})...) },
		"delete dead": func(ctx context.Context) error { return errors.Join(q.DeleteDead(ctx, []string{"x"})...) },
		"examine":     func(ctx context.Context) error { _, err := b.Examine(ctx); return err },
		"remove":      func(ctx context.Context) error { return b.Remove(ctx, "x") },
		"remains":     func(ctx context.Context) error { _, err := b.Remains(ctx, "x"); return err },
	} {
		for _, how := range []string{"expired", "cancelled"} {
			t.Run(what+" "+how, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				if how == "expired" {
					ctx, cancel = context.WithTimeout(t.Context(), givenTime)
				} else {
					time.AfterFunc(givenTime, cancel)
				}
				defer cancel()
				began := time.Now()
				err := call(ctx)
				over := time.Since(began) - givenTime
				if err == nil || over > returnsWithin {
					t.Errorf("it returned %v after its context: %v", over, err)
				}
				t.Logf("%v after its context: %v", over, err)
			})
		}
	}
}

// TestSentCallsOfAStalledBroker has the broker hold back its replies. Calls that were sent have an
// unknown outcome.
func TestSentCallsOfAStalledBroker(t *testing.T) {
	t.Parallel()
	ctx, direct := deadline(t, patience), vhost(t)
	url, proxy := behindProxy(t, direct)
	ch := channel(t, direct)
	// By then each call has to be sent, and the heartbeat must not have broken its connection.
	const givenTime = 5 * time.Second
	var qs []backend.Queue
	var calls []func()
	for what, call := range map[string]func(context.Context, backend.Queue, backend.Lease) error{
		"push": func(ctx context.Context, q backend.Queue, _ backend.Lease) error {
			return q.Schedule(ctx, message("b", 0))[0]
		},
		"push of many": func(ctx context.Context, q backend.Queue, _ backend.Lease) error {
			return q.Schedule(ctx, batch("m", 100, 0))[99]
		},
		"ack": func(ctx context.Context, q backend.Queue, l backend.Lease) error {
			return q.Ack(ctx, []backend.Lease{l})[0]
		},
		"nack": func(ctx context.Context, q backend.Queue, l backend.Lease) error {
			return q.Nack(ctx, []backend.Return{{Lease: l}})[0]
		},
		"dead": func(ctx context.Context, q backend.Queue, l backend.Lease) error {
			return q.Dead(ctx, []backend.DeadLetterRequest{{Lease: l}})[0]
		},
	} {
		for _, how := range []error{context.DeadlineExceeded, context.Canceled} {
			name := fmt.Sprint(queueOf(t), what, how)
			q := openOn(t, newBackend(t, url, few), name)
			qs = append(qs, q)
			must(t, q.Schedule(ctx, message("a", 0))...)
			held := receiveOne(ctx, t, q, "a")
			// Without a Receive the handle ends its subscription. It sends nothing while it waits for the reply.
			go func() { _, _ = q.Receive(ctx, 1, time.Minute) }()
			await(t, "a further subscription", func() bool { return consumers(t, ch, name) == 2 })
			_, errs := q.Extend(ctx, []backend.Lease{held.Lease()}, time.Hour) // waits for the handle, too
			must(t, errs...)
			calls = append(calls, func() {
				ctx, cancel := context.WithTimeout(t.Context(), givenTime)
				defer cancel()
				if how == context.Canceled {
					ctx, cancel = context.WithCancel(t.Context())
					time.AfterFunc(givenTime, cancel)
				}
				if err := call(ctx, q, held.Lease()); !errors.Is(err, backend.ErrOutcomeUnknown) || !errors.Is(err, how) {
					t.Errorf("%s, %v: the call returned %v", what, how, err)
				}
			})
		}
	}
	for _, q := range qs { // the broker has just sent something on each connection that publishes
		must(t, q.Schedule(ctx, message("far", time.Hour))...)
	}
	proxy.StallAfter(0)
	defer proxy.Resume()
	var all sync.WaitGroup
	for _, call := range calls {
		all.Go(call)
	}
	all.Wait()
}

// TestArgumentsAfterReturn overwrites the arguments of calls that have left a broker whose replies
// are late. The race detector sees whether a call still reads them.
func TestArgumentsAfterReturn(t *testing.T) {
	t.Parallel()
	url, proxy := behindProxy(t, shared(t))
	q := open(t, url)
	must(t, q.Schedule(deadline(t, patience), batch("m", 2, 0))...)
	held := receiveAll(deadline(t, patience), t, q, 2)
	proxy.StallAfter(0)
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var calls sync.WaitGroup
	calls.Go(func() {
		ids := []string{"unknown"}
		_ = q.DeleteDead(short, ids)
		ids[0] = "another"
	})
	calls.Go(func() {
		headers := map[string]string{"k": "v"}
		rs := []backend.Return{{Lease: held[0].Lease(), NewHeaders: true, Headers: headers}}
		_ = q.Nack(short, rs)
		headers["k"], rs[0].Delay = "w", time.Second
	})
	calls.Go(func() {
		bs := []backend.DeadLetterRequest{{Lease: held[1].Lease(), Reason: "of the test"}}
		_ = q.Dead(short, bs)
		bs[0].Reason = "another"
	})
	calls.Wait()
	proxy.Resume()
}

// TestTrimOfAStalledBroker has the broker hold back its replies after the first, after the second,
// and so on. A trim whose context ends then has an unknown outcome, or deletes nothing.
func TestTrimOfAStalledBroker(t *testing.T) {
	t.Parallel()
	const n = 3
	url, proxy := behindProxy(t, shared(t))
	q := open(t, url)
	makeDead(deadline(t, patience), t, q, n)
	trim := func(replies int) error {
		ctx, cancel := context.WithTimeout(t.Context(), givenTime+time.Duration(replies)*50*time.Millisecond)
		defer cancel()
		_, _, err := q.TrimDead(ctx, backend.Retention{MaxCount: 1})
		return err
	}
	for replies, left := 0, n; left == n; replies++ {
		proxy.StallAfter(replies)
		err := trim(replies)
		proxy.Resume()
		ids, errList := listDead(deadline(t, patience), q, n)
		must(t, errList)
		left = len(ids)
		unknown := errors.Is(err, backend.ErrOutcomeUnknown) && errors.Is(err, context.DeadlineExceeded)
		if left < n && err != nil && !unknown {
			t.Errorf("stalled after %d replies, %d letters are left: %v", replies, left, err)
		}
	}
}

// TestBlockedWrites has pushes fill the buffers of a connection from which nobody reads any more. When
// the heartbeat breaks it, all pushes end, and others go on over the next connection, of large bodies too.
func TestBlockedWrites(t *testing.T) {
	t.Parallel()
	ctx := deadline(t, patience)
	url, proxy := behindProxy(t, shared(t))
	b := newBackend(t, url)
	q := openOn(t, b, queueOf(t))
	must(t, q.Schedule(ctx, message("before", 0))...)
	proxy.Freeze()
	var pushes sync.WaitGroup
	for i := range 20 {
		pushes.Go(func() {
			ms := batch(fmt.Sprint(i), 75, time.Hour)
			for j := range ms {
				ms[j].Body = make([]byte, 16_000)
			}
			for _, err := range q.Schedule(ctx, ms) {
				if err != nil && !errors.Is(err, backend.ErrOutcomeUnknown) {
					t.Errorf("a push returned %v", err)
				}
			}
		})
	}
	pushes.Wait()
	must(t, ctx.Err())
	must(t, q.Schedule(ctx, []backend.Message{{ID: "large", Body: make([]byte, 100_000), Delay: time.Hour}})...)
}
