package delayq_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/queuetest"
)

// However a delivery is settled at the same time, one call succeeds and the others return
// ErrSettled.
func TestSettlingInAllWaysAtOnce(t *testing.T) {
	t.Parallel()
	for range 50 {
		s := newScene(t)
		var settling sync.WaitGroup
		var succeeded atomic.Int64
		for name := range settles {
			for range 2 {
				settling.Go(func() {
					if err := methods[name](s, t.Context()); err == nil {
						succeeded.Add(1)
					} else if !errors.Is(err, delayq.ErrSettled) {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
		}
		settling.Wait()
		if n := succeeded.Load(); n != 1 {
			t.Errorf("%d calls succeeded, want 1", n)
		}
	}
}

// A handler that settles its message while Consume does leaves nothing in the log, whichever call
// is first, and whichever overtakes the other.
func TestHandlerSettlesWhileConsumeDoes(t *testing.T) {
	type test struct{ late, reply time.Duration }
	queuetest.Cases(t, map[string]test{
		"first":                              {0, 0},
		"second, overtaking":                 {2 * time.Millisecond, 0},
		"second, overtaking, the reply late": {2 * time.Millisecond, 2 * time.Second},
	}, func(t *testing.T, tt test) {
		var log journal
		s := newSeam()
		s.slowFirst("ack", time.Second)
		s.slowReply("ack", tt.reply)
		q := newQueue(t, s.option(), log.Logger())
		push(t, q)
		consume(t, q, time.Minute, func(ctx context.Context, d *delayq.Delivery) error {
			go func() {
				time.Sleep(tt.late)
				_ = d.Ack(context.WithoutCancel(ctx))
			}()
			time.Sleep(time.Millisecond)
			return nil
		})
		wantCounts(t, q, delayq.Stats{})
		if log.String() != "" {
			t.Errorf("logged: %s", log.String())
		}
	})
}

// A caller does not wait longer than its context for the reply to another call.
func TestSettlingDoesNotOutwaitItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSeam()
		s.slowReply("ack", time.Hour)
		q := newQueue(t, s.option())
		push(t, q)
		d := receive(t, q)
		go func() { _ = d.Ack(context.WithoutCancel(t.Context())) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if err := d.Nack(ctx, 0); !errors.Is(err, delayq.ErrLeaseLost) || errors.Is(err, delayq.ErrSettled) || time.Since(began) != time.Second {
			t.Errorf("error %v after %v, want that the lease is lost after 1 s", err, time.Since(began))
		}
		time.Sleep(time.Hour)
		wantIs(t, d.Nack(t.Context(), 0), delayq.ErrSettled)
	})
}

func TestRelease(t *testing.T) {
	queuetest.Cases(t, map[string]func(delayq.Queue, context.Context, []*delayq.Delivery) error{
		"each": func(_ delayq.Queue, ctx context.Context, ds []*delayq.Delivery) error {
			var errs []error
			for _, d := range ds {
				errs = append(errs, d.Release(ctx))
			}
			return errors.Join(errs...)
		},
		"batch": delayq.Queue.ReleaseBatch,
	}, func(t *testing.T, release func(delayq.Queue, context.Context, []*delayq.Delivery) error) {
		q, ctx := newQueue(t), t.Context()
		for _, id := range []string{"a", "b", "c"} {
			push(t, q, delayq.ID(id))
		}
		must(t, receive(t, q).Nack(ctx, time.Second)) // a is behind the others then, with an attempt
		time.Sleep(time.Second)
		for range 5 {
			ds, err := q.ReceiveBatch(ctx, 10)
			must(t, err)
			if len(ds) != 3 || ds[0].ID != "b" || ds[0].Attempt != 1 || ds[2].ID != "a" || ds[2].Attempt != 2 {
				t.Fatalf("got %v, want b, c and a, with attempts 1, 1, 2", ds)
			}
			must(t, release(q, ctx, ds))
		}
	})
}

func TestNackAndDeadLetterBatch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q, ctx := newQueue(t), t.Context()
		_, err := q.PushBatch(ctx, make([]delayq.Message, 5))
		must(t, err)
		ds, err := q.ReceiveBatch(ctx, 5)
		must(t, err)
		must(t, ds[1].Ack(ctx))
		err = q.NackBatch(ctx, ds[:3], time.Hour)
		wantIs(t, err, delayq.ErrSettled)
		var batch *delayq.BatchError
		if !errors.As(err, &batch) || batch.Errs[0] != nil || batch.Errs[1] == nil || batch.Errs[2] != nil {
			t.Errorf("error %v, want one for the second delivery", err)
		}
		must(t, q.DeadLetterBatch(ctx, ds[3:], strings.Repeat("r", backend.MaxReason+1)))
		wantCounts(t, q, delayq.Stats{Scheduled: 2, Dead: 2})
		if ls := deadLetters(t, q); len(ls[0].Reason) != backend.MaxReason {
			t.Errorf("a reason of %d bytes", len(ls[0].Reason))
		}
		time.Sleep(time.Hour)
		wantCounts(t, q, delayq.Stats{Ready: 2, Dead: 2})
		wantInvalid(t, q.NackBatch(ctx, ds[:1], -1), "delay", "-1ns")
		wantInvalid(t, q.ExtendBatch(ctx, ds[:1], 0), "lease", "0s")
	})
}

func TestExtendBatch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q, ctx := newQueue(t, delayq.WithLease(time.Minute)), t.Context()
		_, err := q.PushBatch(ctx, make([]delayq.Message, 3))
		must(t, err)
		ds, err := q.ReceiveBatch(ctx, 3)
		must(t, err)
		must(t, ds[1].Ack(ctx))
		wantIs(t, q.ExtendBatch(ctx, ds, time.Hour), delayq.ErrSettled)
		time.Sleep(time.Hour - 1)
		wantCounts(t, q, delayq.Stats{InFlight: 2})
		if left := time.Until(ds[2].LeaseUntil()); left != 1 {
			t.Errorf("the lease ends in %v", left)
		}
		time.Sleep(time.Nanosecond)
		wantIs(t, q.ExtendBatch(ctx, ds[2:], time.Hour), delayq.ErrLeaseLost)
	})
}

// A handler's Extend holds though Consume renews the lease, and a short one does not end the lease
// before the next renewal.
func TestExtendInAHandler(t *testing.T) {
	type test struct{ after, extension, handles time.Duration }
	queuetest.Cases(t, map[string]test{
		"long":                            {0, time.Hour, 2 * time.Hour},
		"short":                           {0, time.Second, 10 * time.Minute},
		"long, with a renewal on its way": {20*time.Second + 500*time.Millisecond, time.Hour, 2 * time.Hour},
	}, func(t *testing.T, tt test) {
		s := newSeam()
		s.slowFirst("extend", time.Second)
		q := newQueue(t, s.option(), delayq.WithLease(time.Minute))
		push(t, q)
		handled := 0
		consume(t, q, 3*time.Hour, func(ctx context.Context, d *delayq.Delivery) error {
			handled++
			time.Sleep(tt.after)
			must(t, d.Extend(ctx, tt.extension))
			must(t, q.ExtendBatch(ctx, []*delayq.Delivery{d}, tt.extension))
			until := d.LeaseUntil()
			time.Sleep(time.Minute)
			if d.LeaseUntil().Before(until.Add(-time.Second)) {
				t.Errorf("the lease ends %v, was extended to %v", d.LeaseUntil(), until)
			}
			time.Sleep(tt.handles)
			return ctx.Err()
		}, delayq.Workers(2))
		if handled != 1 {
			t.Errorf("the message was handed out %d times while its handler ran", handled)
		}
		wantCounts(t, q, delayq.Stats{})
		if n, _ := s.calls("extend"); n > 200 {
			t.Errorf("%d extensions, want none while the long one lasts", n)
		}
	})
}

// A handler's Extend that the store does not reply to yet leaves the lease to the renewals.
func TestExtendThatHangsInAHandler(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSeam()
		s.slowFirst("extend", 2*time.Minute)
		q := newQueue(t, s.option())
		push(t, q)
		handled := 0
		consume(t, q, time.Hour, func(ctx context.Context, d *delayq.Delivery) error {
			handled++
			must(t, d.Extend(ctx, time.Hour))
			time.Sleep(3 * time.Minute) // virtual
			return ctx.Err()
		}, delayq.Workers(2))
		if handled != 1 {
			t.Errorf("the message was handed out %d times while its handler ran", handled)
		}
		wantCounts(t, q, delayq.Stats{})
	})
}

// An Extend that fails changes nothing.
func TestExtendThatFailsInAHandler(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSeam()
		s.before = func(_ context.Context, op string) error {
			if n, _ := s.calls("extend"); op == "extend" && n == 2 {
				return errStore
			}
			return nil
		}
		q := newQueue(t, s.option())
		push(t, q)
		consume(t, q, 2*time.Hour, func(ctx context.Context, d *delayq.Delivery) error {
			must(t, d.Extend(ctx, time.Hour))
			want := time.Now().Add(time.Hour)
			wantIs(t, d.Extend(ctx, time.Hour), errStore)
			time.Sleep(time.Minute) // virtual
			if until := d.LeaseUntil(); !until.Equal(want) {
				t.Errorf("the lease ends %v, was extended to %v", until, want)
			}
			return nil
		})
		wantCounts(t, q, delayq.Stats{})
	})
}

// The store has done an ack, and its reply is on its way.
func TestExtendBesideAnAck(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSeam()
		s.slowReply("ack", time.Second)
		q := newQueue(t, s.option())
		push(t, q)
		d := receive(t, q)
		acked := make(chan error, 1)
		go func() { acked <- d.Ack(t.Context()) }()
		synctest.Wait()
		wantIs(t, d.Extend(t.Context(), time.Minute), delayq.ErrSettled)
		must(t, <-acked)
	})
}

// A renewal that undid a handler's Extend repeats it, and the handler settles its message meanwhile.
func TestAckBesideARenewal(t *testing.T) {
	each(t, []time.Duration{0, time.Second}, func(t *testing.T, wait time.Duration) {
		var log journal
		s := newSeam()
		s.slowReply("extend", time.Second) // the renewal
		s.before = func(_ context.Context, op string) error {
			if n, _ := s.calls("extend"); op == "extend" && n == 3 { // the handler's, repeated
				time.Sleep(time.Second) // virtual
			}
			return nil
		}
		q := newQueue(t, s.option(), log.Logger(), delayq.WithLease(time.Minute))
		push(t, q)
		consume(t, q, time.Hour, func(ctx context.Context, d *delayq.Delivery) error {
			time.Sleep(20*time.Second + 500*time.Millisecond) // virtual
			must(t, d.Extend(ctx, time.Hour))
			time.Sleep(wait) // virtual
			must(t, d.Ack(ctx))
			time.Sleep(time.Minute) // virtual
			return ctx.Err()
		})
		if strings.Contains(log.String(), "renewing a lease failed") {
			t.Errorf("the message is settled, and the log has %s", log.String())
		}
		wantCounts(t, q, delayq.Stats{})
	})
}

// A handler that hangs until each stop is a failure at last.
func TestHandlerThatHangsUntilEachStop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log journal
		q := newQueue(t, log.Logger())
		push(t, q)
		for restart := range 3 {
			consume(t, q, 2*time.Hour, func(ctx context.Context, d *delayq.Delivery) error {
				if d.Attempt != restart+1 {
					t.Errorf("attempt %d after %d stops", d.Attempt, restart)
				}
				<-ctx.Done()
				return ctx.Err()
			}, delayq.MaxAttempts(3))
		}
		wantCounts(t, q, delayq.Stats{Dead: 1})
		log.Want(t, "ran until it was stopped; the attempt counts", "message is dead")
	})
}

// A store's text for a failure passes through the errors of single calls and of batches, and the
// calls can be repeated.
func TestTemporaryErrorsPass(t *testing.T) {
	t.Parallel()
	for _, temporary := range []error{delayq.ErrUnavailable, delayq.ErrOutcomeUnknown} {
		s := newSeam()
		q := newQueue(t, s.option())
		push(t, q)
		d := receive(t, q)
		s.before = func(context.Context, string) error { return &net{temporary} }
		id, err := q.Push(t.Context(), nil)
		wantIs(t, err, temporary)
		ids, err := q.PushBatch(t.Context(), []delayq.Message{{}, {ID: "given"}})
		wantIs(t, err, temporary)
		if len(ids) != 2 || ids[1] != "given" {
			t.Errorf("ids %q of a batch that may be stored", ids)
		}
		for _, err := range []error{
			d.Ack(t.Context()), d.Extend(t.Context(), time.Minute), q.AckBatch(t.Context(), []*delayq.Delivery{d}), d.DeadLetter(t.Context(), ""),
		} {
			wantIs(t, err, temporary)
		}
		s.before = nil
		for _, again := range append(ids, id) {
			push(t, q, delayq.ID(again))
		}
		must(t, d.Ack(t.Context()))
		wantCounts(t, q, delayq.Stats{Ready: 3})
	}
}

// net is a store's error of its own that matches a sentinel.
type net struct{ kind error }

func (e *net) Error() string   { return "connection refused" }
func (e *net) Unwrap() []error { return []error{e.kind, errStore} }
