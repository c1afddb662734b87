package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/queuetest"
)

var errHandler = errors.New("the handler's error")

// A running is a Consume under way.
type running struct {
	stop context.CancelFunc
	done chan error
}

func start(t *testing.T, q delayq.Queue, h delayq.Handler, opts ...delayq.ConsumeOption) *running {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	r := &running{stop, make(chan error, 1)}
	go func() { r.done <- q.Consume(ctx, h, opts...) }()
	t.Cleanup(stop)
	return r
}

// end stops the consumer and returns its error.
func (r *running) end() error {
	r.stop()
	return <-r.done
}

// consume runs a consumer for as long, and until all that it began has come to rest.
func consume(t *testing.T, q delayq.Queue, d time.Duration, h delayq.Handler, opts ...delayq.ConsumeOption) {
	t.Helper()
	r := start(t, q, h, opts...)
	time.Sleep(d)
	synctest.Wait()
	must(t, r.end())
}

// every waits equally long after each failure.
func every(d time.Duration) delayq.ConsumeOption {
	return delayq.Retry(delayq.Backoff{Base: d, Max: d, Factor: 1})
}

// policy is a function that is a RetryPolicy.
type policy func(attempt int, err error) time.Duration

func (p policy) Delay(attempt int, err error) time.Duration { return p(attempt, err) }

// Time in these tests is virtual, so that measured times are exact.

func TestConsumeHandlesEachMessageWhenDue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q := newQueue(t)
		for i := range 100 {
			push(t, q, delayq.After(time.Duration(100-i)*time.Second))
		}
		handled := 0
		var before func() error
		consume(t, q, time.Hour, func(ctx context.Context, d *delayq.Delivery) error {
			if before != nil && before() == nil {
				t.Error("a context outlives its handler")
			}
			before = ctx.Err
			if late := time.Since(d.Due); late != 0 {
				t.Errorf("%v is late by %v", d, late)
			}
			handled++
			return nil
		})
		if handled != 100 {
			t.Errorf("%d messages handled, want 100", handled)
		}
		wantCounts(t, q, delayq.Stats{})
	})
}

func TestPolicyIsAskedWithTheError(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q := newQueue(t)
		push(t, q)
		began := time.Now()
		var asked []int
		var tried []time.Duration
		consume(t, q, time.Hour, func(context.Context, *delayq.Delivery) error {
			tried = append(tried, time.Since(began))
			return errHandler
		}, delayq.MaxAttempts(3), delayq.Retry(policy(func(attempt int, err error) time.Duration {
			if asked = append(asked, attempt); err != errHandler {
				t.Errorf("asked about %v", err)
			}
			return time.Duration(attempt) * time.Minute
		})))
		if want := []time.Duration{0, time.Minute, 3 * time.Minute}; !slices.Equal(tried, want) || !slices.Equal(asked, []int{1, 2}) {
			t.Errorf("tried at %v, want %v; asked after attempts %v", tried, want, asked)
		}
	})
}

// A policy's delay that no store accepts must not cost the message.
func TestAbsurdPolicyIsBounded(t *testing.T) {
	const limit = time.Hour
	type test struct {
		delay      time.Duration
		maxDelay   time.Duration // the store's
		want       time.Duration
		complained bool
	}
	queuetest.Cases(t, map[string]test{
		"negative":                  {-time.Hour, 0, 0, true},
		"longest":                   {1<<63 - 1, 0, backend.MaxDelay, true},
		"longer than the store can": {limit + 1, limit, limit, true},
		"as long as the store can":  {limit, limit, limit, false},
	}, func(t *testing.T, tt test) {
		var log journal
		s := newSeam()
		s.traits = func(tr *backend.Traits) { tr.MaxDelay = tt.maxDelay }
		q := newQueue(t, s.option(), log.Logger())
		push(t, q)
		handled := make(chan struct{}, 10)
		r := start(t, q, func(_ context.Context, d *delayq.Delivery) error {
			handled <- struct{}{}
			if d.Attempt == 1 {
				return errHandler
			}
			return nil
		}, delayq.Retry(policy(func(int, error) time.Duration { return tt.delay })))
		<-handled
		synctest.Wait()
		if tt.want == 0 {
			<-handled
		} else if got := time.Until(stats(t, q).HeadDue); got != tt.want {
			t.Errorf("due in %v, want %v", got, tt.want)
		}
		must(t, r.end())
		if got := strings.Contains(log.String(), "retry policy"); got != tt.complained {
			t.Errorf("complained %v, want %v: %s", got, tt.complained, log.String())
		}
	})
}

// A policy that panics has the message wait as long as the default policy says.
func TestPolicyThatPanics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log journal
		q := newQueue(t, log.Logger())
		push(t, q)
		consume(t, q, 0, returning(errHandler), delayq.Retry(policy(func(int, error) time.Duration { panic("no table for this one") })))
		if wait := time.Until(stats(t, q).HeadDue); wait < time.Second/2 || wait > time.Second {
			t.Errorf("the second attempt is due in %v, want half a second to one", wait)
		}
		log.Want(t, "no table for this one")
	})
}

func TestUnlimitedAttempts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q := newQueue(t)
		push(t, q)
		consume(t, q, time.Hour, func(_ context.Context, d *delayq.Delivery) error {
			if d.Attempt <= 1000 {
				return errHandler
			}
			return nil
		}, delayq.MaxAttempts(0), every(time.Second))
		wantCounts(t, q, delayq.Stats{})
	})
}

// Named, to be found in a stack.
func explode(value any) { panic(value) }

func TestPanicCountsAsFailure(t *testing.T) {
	noError := new(runtime.PanicNilError)
	type test struct {
		value  any
		reason string // a part of it
		is     func(*delayq.PanicError) bool
	}
	queuetest.Cases(t, map[string]test{
		"string": {"boom", "handler panicked: boom", func(p *delayq.PanicError) bool { return p.Unwrap() == nil }},
		"error":  {fmt.Errorf("read: %w", io.EOF), "read: EOF", func(p *delayq.PanicError) bool { return errors.Is(p, io.EOF) }},
		"nil":    {nil, "nil", func(p *delayq.PanicError) bool { return errors.As(p, &noError) }},
	}, func(t *testing.T, tt test) {
		q := newQueue(t)
		push(t, q)
		var failure error
		consume(t, q, 0, func(context.Context, *delayq.Delivery) error {
			explode(tt.value)
			return nil
		}, delayq.MaxAttempts(2), delayq.Retry(policy(func(_ int, err error) time.Duration {
			failure = err
			return 0
		})))

		letters := deadLetters(t, q)
		if len(letters) != 1 || letters[0].Attempts != 2 {
			t.Fatalf("dead letters %+v, want one after two attempts", letters)
		}
		for _, part := range []string{tt.reason, "delayq_test.explode"} {
			if !strings.Contains(letters[0].Reason, part) {
				t.Errorf("reason lacks %q:\n%s", part, letters[0].Reason)
			}
		}
		var p *delayq.PanicError
		if !errors.As(failure, &p) || len(p.Stack) == 0 || !tt.is(p) {
			t.Errorf("policy was asked with %v, want a PanicError that wraps what was an error", failure)
		}
	})
}

func TestHandlerSettlesItself(t *testing.T) {
	type test struct {
		do   func(delayq.Queue, context.Context, *delayq.Delivery) error
		want delayq.Stats
	}
	ends := map[string]test{
		"ack": {func(_ delayq.Queue, ctx context.Context, d *delayq.Delivery) error { return d.Ack(ctx) }, delayq.Stats{}},
		"ack in a batch": {func(q delayq.Queue, ctx context.Context, d *delayq.Delivery) error {
			return q.AckBatch(ctx, []*delayq.Delivery{d})
		}, delayq.Stats{}},
		"nack": {func(_ delayq.Queue, ctx context.Context, d *delayq.Delivery) error { return d.Nack(ctx, time.Hour) }, delayq.Stats{Scheduled: 1}},
		"dead": {func(_ delayq.Queue, ctx context.Context, d *delayq.Delivery) error { return d.DeadLetter(ctx, "") }, delayq.Stats{Dead: 1}},
	}
	queuetest.Cases(t, ends, func(t *testing.T, tt test) {
		for _, result := range []error{nil, errHandler} {
			var log journal
			q := newQueue(t, log.Logger())
			push(t, q)
			calls := 0
			consume(t, q, 20*time.Minute, func(ctx context.Context, d *delayq.Delivery) error {
				calls++
				must(t, tt.do(q, ctx, d))
				time.Sleep(10 * time.Minute) // longer than the lease, which is no longer the handler's to renew
				if ctx.Err() != nil {
					t.Errorf("context ended: %v", context.Cause(ctx))
				}
				return result
			}, every(time.Second))
			wantCounts(t, q, tt.want)
			if calls != 1 {
				t.Errorf("%d calls, want 1", calls)
			}
			if got, want := strings.Contains(log.String(), errHandler.Error()), result != nil; got != want {
				t.Errorf("logged the result %v, want %v: %s", got, want, log.String())
			}
			if strings.Contains(log.String(), "settling failed") {
				t.Errorf("settled twice: %s", log.String())
			}
		}
	})
}

func TestWorkersBoundWhatIsHeld(t *testing.T) {
	each(t, []int{1, 3, 16}, func(t *testing.T, n int) {
		q := newQueue(t)
		pushMany(t, q, 4*n)
		var busy, total atomic.Int64
		finish := make(chan struct{})
		r := start(t, q, func(context.Context, *delayq.Delivery) error {
			busy.Add(1)
			defer busy.Add(-1)
			total.Add(1)
			<-finish
			return nil
		}, delayq.Workers(n))
		for done := range 3 * n {
			synctest.Wait()
			if got := busy.Load(); got != int64(n) {
				t.Errorf("%d handlers run, want %d", got, n)
			}
			wantCounts(t, q, delayq.Stats{InFlight: int64(n), Ready: int64(3*n - done)})
			finish <- struct{}{}
		}
		close(finish)
		synctest.Wait()
		must(t, r.end())
		if got := total.Load(); got != int64(4*n) {
			t.Errorf("%d messages handled, want %d", got, 4*n)
		}
	})
}

// Consumers of one handle and of another take messages at the same time, each with one worker.
func TestConsumersShareAQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		one, two := newPair(t, newSeam())
		pushMany(t, one, 5)
		var held [3]atomic.Int64
		var rs []*running
		for i, q := range []delayq.Queue{one, one, two} {
			rs = append(rs, start(t, q, func(ctx context.Context, _ *delayq.Delivery) error {
				held[i].Add(1)
				<-ctx.Done()
				return ctx.Err()
			}, delayq.Drain(0)))
		}
		synctest.Wait()
		for i := range held {
			if n := held[i].Load(); n != 1 {
				t.Errorf("consumer %d handles %d messages, want 1", i, n)
			}
		}
		for _, r := range rs {
			must(t, r.end())
		}
	})
}

// A store hands out no more than MaxBatch at once, however many workers wait.
func TestMoreWorkersThanABatch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSeam()
		q := newQueue(t, s.option())
		pushMany(t, q, 10)
		consume(t, q, 0, returning(nil), delayq.Workers(delayq.MaxBatch+1))
		wantCounts(t, q, delayq.Stats{})
		if _, got := s.calls("receive"); got != delayq.MaxBatch {
			t.Errorf("store was asked for %d messages, want %d", got, delayq.MaxBatch)
		}
	})
}

type contextKey struct{}

func TestHandlersContextKeepsValues(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	push(t, q)
	ctx, stop := context.WithCancel(context.WithValue(t.Context(), contextKey{}, "value"))
	defer stop()
	var got any
	must(t, q.Consume(ctx, func(ctx context.Context, _ *delayq.Delivery) error {
		got = ctx.Value(contextKey{})
		stop()
		return ctx.Err()
	}))
	if got != "value" {
		t.Errorf("value is %v", got)
	}
	wantCounts(t, q, delayq.Stats{})
}

// The message kills its worker each time, so no handler ever reports a failure.
func TestSilentDeathsCountAsAttempts(t *testing.T) {
	each(t, []string{"", "dead"}, func(t *testing.T, fails string) {
		s := newSeam()
		s.before = once(fails)
		q := newQueue(t, s.option(), delayq.WithLease(time.Minute))
		push(t, q, delayq.ID("poison"))
		for range 3 {
			receive(t, q)
			time.Sleep(time.Minute)
		}
		consume(t, q, time.Hour, unwanted, delayq.MaxAttempts(3))
		letters := deadLetters(t, q)
		if len(letters) != 1 || letters[0].ID != "poison" || !strings.Contains(letters[0].Reason, "3 attempts") {
			t.Errorf("dead letters %+v, want the poison one", letters)
		}
		wantCounts(t, q, delayq.Stats{Dead: 1})
	})
}
