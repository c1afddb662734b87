package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/memory"
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

// told is a policy that records its arguments.
type told struct {
	delay func(attempt int, err error) time.Duration
	mu    sync.Mutex
	asked []error
}

func (p *told) Delay(attempt int, err error) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, err)
	if p.delay == nil {
		return 0
	}
	return p.delay(attempt, err)
}

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

func TestRetriesFollowThePolicy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q := newQueue(t)
		push(t, q, delayq.ID("poison"))
		began := time.Now()
		var tried []time.Duration
		consume(t, q, time.Hour, func(_ context.Context, d *delayq.Delivery) error {
			tried = append(tried, time.Since(began))
			return fmt.Errorf("failure %d", d.Attempt)
		}, delayq.MaxAttempts(6), delayq.Retry(delayq.Backoff{Base: time.Second, Max: 5 * time.Second, Factor: 2}))

		const s = time.Second
		want := []time.Duration{0, 1 * s, 3 * s, 7 * s, 12 * s, 17 * s} // after waits of 1, 2, 4, 5 and 5 s
		if !slices.Equal(tried, want) {
			t.Errorf("tried at %v, want %v", tried, want)
		}
		letters := deadLetters(t, q)
		if len(letters) != 1 || letters[0].Reason != "failure 6" || letters[0].Attempts != 6 {
			t.Errorf("dead letters %+v, want one of the sixth failure", letters)
		}
		wantCounts(t, q, delayq.Stats{Dead: 1})
	})
}

func TestPolicyIsAskedWithTheError(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q := newQueue(t)
		push(t, q)
		var attempts []int
		policy := &told{delay: func(attempt int, _ error) time.Duration {
			attempts = append(attempts, attempt)
			return time.Duration(attempt) * time.Minute
		}}
		consume(t, q, time.Hour, func(context.Context, *delayq.Delivery) error { return errHandler },
			delayq.Retry(policy), delayq.MaxAttempts(3))
		if !slices.Equal(attempts, []int{1, 2}) || len(policy.asked) != 2 || policy.asked[1] != errHandler {
			t.Errorf("asked after attempts %v with %v", attempts, policy.asked)
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
	cases(t, map[string]test{
		"negative":                  {-time.Hour, 0, 0, true},
		"longest":                   {1<<63 - 1, 0, backend.MaxDelay, true},
		"longer than the store can": {limit + 1, limit, limit, true},
		"as long as the store can":  {limit, limit, limit, false},
	}, func(t *testing.T, tt test) {
		var log journal
		s := newSeam()
		s.traits = func(tr *backend.Traits) { tr.MaxDelay = tt.maxDelay }
		q := newQueue(t, s.option(), log.logger())
		push(t, q)
		handled := make(chan struct{}, 10)
		r := start(t, q, func(_ context.Context, d *delayq.Delivery) error {
			handled <- struct{}{}
			if d.Attempt == 1 {
				return errHandler
			}
			return nil
		}, delayq.Retry(&told{delay: func(int, error) time.Duration { return tt.delay }}))
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
	type test struct {
		panics func()
		reason []string // parts of it
		is     error
		noWrap bool
	}
	cases(t, map[string]test{
		"string":        {panics: func() { explode("boom") }, reason: []string{"handler panicked: boom", "delayq_test.explode"}, noWrap: true},
		"error":         {panics: func() { explode(io.ErrUnexpectedEOF) }, reason: []string{"unexpected EOF", "delayq_test.explode"}, is: io.ErrUnexpectedEOF},
		"wrapped error": {panics: func() { explode(fmt.Errorf("read: %w", io.EOF)) }, reason: []string{"read: EOF"}, is: io.EOF},
		"nil":           {panics: func() { explode(nil) }, reason: []string{"nil", "delayq_test.explode"}, is: new(runtime.PanicNilError)},
		"nil pointer":   {panics: func() { _ = *(*int)(nil) }, reason: []string{"nil pointer dereference", "TestPanicCountsAsFailure"}},
	}, func(t *testing.T, tt test) {
		q := newQueue(t)
		push(t, q)
		policy := &told{}
		consume(t, q, 0, func(context.Context, *delayq.Delivery) error {
			tt.panics()
			return nil
		}, delayq.Retry(policy), delayq.MaxAttempts(2))

		letters := deadLetters(t, q)
		if len(letters) != 1 || letters[0].Attempts != 2 {
			t.Fatalf("dead letters %+v, want one after two attempts", letters)
		}
		for _, part := range tt.reason {
			if !strings.Contains(letters[0].Reason, part) {
				t.Errorf("reason lacks %q:\n%s", part, letters[0].Reason)
			}
		}
		var p *delayq.PanicError
		if len(policy.asked) != 1 || !errors.As(policy.asked[0], &p) || len(p.Stack) == 0 {
			t.Fatalf("policy was asked with %v, want a PanicError", policy.asked)
		}
		if want := new(runtime.PanicNilError); errors.As(tt.is, &want) {
			if !errors.As(p, &want) {
				t.Errorf("%v is no %T", p, want)
			}
		} else if tt.is != nil && !errors.Is(p, tt.is) {
			t.Errorf("%v hides %v", p, tt.is)
		}
		if tt.noWrap && errors.Unwrap(p) != nil {
			t.Errorf("%v wraps %v", p, errors.Unwrap(p))
		}
	})
}

func TestGoexitCountsAsFailure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q := newQueue(t)
		push(t, q)
		push(t, q)
		consume(t, q, time.Minute, func(context.Context, *delayq.Delivery) error {
			runtime.Goexit()
			return nil
		}, delayq.MaxAttempts(2), every(time.Second))
		letters := deadLetters(t, q)
		if len(letters) != 2 || letters[0].Attempts != 2 || !strings.Contains(letters[0].Reason, "Goexit") {
			t.Errorf("dead letters %+v, want two of Goexit", letters)
		}
	})
}

func TestHandlerSettlesItself(t *testing.T) {
	t.Parallel()
	for _, settle := range []struct {
		name string
		do   func(*delayq.Delivery, context.Context) error
		want delayq.Stats
	}{
		{"ack", (*delayq.Delivery).Ack, delayq.Stats{}},
		{"ack in a batch", nil, delayq.Stats{}},
		{"nack", func(d *delayq.Delivery, ctx context.Context) error { return d.Nack(ctx, time.Hour) }, delayq.Stats{Scheduled: 1}},
		{"dead", func(d *delayq.Delivery, ctx context.Context) error { return d.Dead(ctx, "hopeless") }, delayq.Stats{Dead: 1}},
	} {
		for _, result := range []error{nil, errHandler} {
			t.Run(fmt.Sprint(settle.name, " ", result), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					var log journal
					q := newQueue(t, log.logger())
					push(t, q)
					calls := 0
					consume(t, q, 20*time.Minute, func(ctx context.Context, d *delayq.Delivery) error {
						calls++
						if settle.do == nil {
							must(t, q.AckBatch(ctx, []*delayq.Delivery{d}))
						} else {
							must(t, settle.do(d, ctx))
						}
						// Longer than the lease, which is no longer the handler's to renew.
						time.Sleep(10 * time.Minute)
						if ctx.Err() != nil {
							t.Errorf("context ended: %v", context.Cause(ctx))
						}
						return result
					}, every(time.Second))
					wantCounts(t, q, settle.want)
					if calls != 1 {
						t.Errorf("%d calls, want 1", calls)
					}
					if got, want := strings.Contains(log.String(), errHandler.Error()), result != nil; got != want {
						t.Errorf("logged the result %v, want %v: %s", got, want, log.String())
					}
					if strings.Contains(log.String(), "settling failed") {
						t.Errorf("settled twice: %s", log.String())
					}
				})
			})
		}
	}
}

func TestWorkersBoundWhatIsHeld(t *testing.T) {
	each(t, []int{1, 3, 16}, func(t *testing.T, n int) {
		q := newQueue(t)
		for range 4 * n {
			push(t, q)
		}
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

// A store hands out no more than MaxBatch at once, however many workers wait.
func TestMoreWorkersThanABatch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSeam()
		q := newQueue(t, s.option())
		for range 10 {
			push(t, q)
		}
		var handled atomic.Int64
		consume(t, q, 0, func(context.Context, *delayq.Delivery) error {
			handled.Add(1)
			return nil
		}, delayq.Workers(delayq.MaxBatch+1))
		if got := handled.Load(); got != 10 {
			t.Errorf("%d messages handled, want 10", got)
		}
		if _, got := s.calls("receive"); got != delayq.MaxBatch {
			t.Errorf("store was asked for %d messages, want %d", got, delayq.MaxBatch)
		}
	})
}

func TestStuckHandlerDelaysNoOther(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q := newQueue(t)
		push(t, q, delayq.ID("stuck"))
		for i := range 100 {
			push(t, q, delayq.After(time.Duration(i+1)*time.Minute))
		}
		r := start(t, q, func(ctx context.Context, d *delayq.Delivery) error {
			if d.ID == "stuck" {
				<-ctx.Done()
				return ctx.Err()
			}
			if late := time.Since(d.Due); late != 0 {
				t.Errorf("%v is late by %v", d, late)
			}
			return nil
		}, delayq.Workers(2))
		time.Sleep(3 * time.Hour)
		wantCounts(t, q, delayq.Stats{InFlight: 1})
		must(t, r.end())
		if d := receive(t, q); d.ID != "stuck" || d.Attempt != 2 {
			t.Errorf("came back: %v, want stuck and its attempt counted", d)
		}
	})
}

func TestTwoConsumersShareAQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := memory.New()
		one, two := newQueue(t, delayq.WithBackend(b)), newQueue(t, delayq.WithBackend(b))
		const n = 1000
		for i := range n {
			push(t, one, delayq.After(time.Duration(i/10)*time.Second))
		}
		var mu sync.Mutex
		seen := make(map[string]int)
		var calls [3]int
		var rs []*running
		for i, q := range []delayq.Queue{one, one, two} {
			rs = append(rs, start(t, q, func(_ context.Context, d *delayq.Delivery) error {
				time.Sleep(time.Second)
				mu.Lock()
				defer mu.Unlock()
				seen[d.ID]++
				calls[i]++
				return nil
			}, delayq.Workers(4)))
		}
		time.Sleep(time.Hour)
		for _, r := range rs {
			must(t, r.end())
		}
		if len(seen) != n {
			t.Errorf("%d messages handled, want %d", len(seen), n)
		}
		for id, times := range seen {
			if times != 1 {
				t.Errorf("%s was handled %d times", id, times)
			}
		}
		for i, c := range calls {
			if c == 0 {
				t.Errorf("consumer %d got nothing", i)
			}
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
	each(t, []bool{false, true}, func(t *testing.T, storeFails bool) {
		s := newSeam()
		fails := storeFails
		s.before = func(_ context.Context, op string) error {
			if op == "dead" && fails {
				fails = false
				return errStore
			}
			return nil
		}
		q := newQueue(t, s.option(), delayq.WithLease(time.Minute))
		push(t, q, delayq.ID("poison"))
		for range 3 {
			receive(t, q)
			time.Sleep(time.Minute)
		}
		consume(t, q, time.Hour, func(_ context.Context, d *delayq.Delivery) error {
			t.Errorf("handler was called with %v", d)
			return nil
		}, delayq.MaxAttempts(3))
		letters := deadLetters(t, q)
		if len(letters) != 1 || letters[0].ID != "poison" || !strings.Contains(letters[0].Reason, "3 attempts") {
			t.Errorf("dead letters %+v, want the poison one", letters)
		}
		wantCounts(t, q, delayq.Stats{Dead: 1})
	})
}
