package consumer

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
	"golang.org/x/time/rate"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/lease"
	"github.com/delayq/delayq/internal/telemetry"
	"github.com/delayq/delayq/memory"
)

const leaseLength = 30 * time.Second

// A queue is a memory store as a consumer sees it, and an Observer.
type queue struct {
	backend.Queue
	extend error         // what Extend returns for the first lease in place of the store's result; nil for that
	ack    func()        // called before each ack; nil for nothing
	first  backend.Token // of the lease that was extended first

	mu       sync.Mutex
	workers  int
	running  int
	failed   map[string]int
	outcomes map[string]int
}

func newQueue(t *testing.T, messages int) *queue {
	t.Helper()
	b := memory.New()
	store, err := b.Open(t.Context(), "orders", backend.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = store.Close(), b.Close() })
	q := &queue{Queue: store, failed: make(map[string]int), outcomes: make(map[string]int)}
	for i := range messages {
		id := string(rune('a' + i))
		if err := errors.Join(store.Schedule(t.Context(), []backend.Message{{ID: id}})...); err != nil {
			t.Fatal(err)
		}
	}
	return q
}

func (q *queue) Receive(ctx context.Context, limit int) ([]Delivery, error) {
	got, err := q.Queue.Receive(ctx, limit, leaseLength)
	ds := make([]Delivery, len(got))
	for i, g := range got {
		d := &received{Delivery: g, q: q}
		d.lease.Take(g.Lease(), leaseLength, time.Now(), g.Until)
		ds[i] = d
	}
	return ds, err
}

func (q *queue) Extend(ctx context.Context, ls []backend.Lease, length time.Duration) ([]time.Time, []error) {
	if q.first == (backend.Token{}) { // one consumer renews in one goroutine
		q.first = ls[0].Token
	}
	if q.extend != nil && ls[0].Token == q.first {
		return make([]time.Time, len(ls)), backend.FailAll(len(ls), q.extend)
	}
	return q.Queue.Extend(ctx, ls, length)
}

func (q *queue) AddWorkers(n int) (remove func()) {
	q.count(func() { q.workers += n })
	return func() { q.count(func() { q.workers -= n }) }
}

func (q *queue) Failed(_ context.Context, kind string, n int) {
	q.count(func() { q.failed[kind] += n })
}

func (q *queue) StartProcess(ctx context.Context, _ Delivery) (context.Context, Span) {
	q.count(func() { q.running++ })
	return ctx, q
}

func (q *queue) Returned(_ context.Context, failure string, _ error) {
	q.count(func() {
		q.running--
		if failure != "" {
			q.failed[failure]++
		}
	})
}

func (q *queue) End(outcome string, notSettled error) {
	if notSettled != nil {
		outcome = notSettled.Error()
	}
	q.count(func() { q.outcomes[outcome]++ })
}

func (q *queue) count(change func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	change()
}

// want checks counts, and that nothing is left running.
func (q *queue) want(t *testing.T, failed, outcomes map[string]int) {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	if !equal(q.failed, failed) || !equal(q.outcomes, outcomes) {
		t.Errorf("failures %v, want %v; outcomes %v, want %v", q.failed, failed, q.outcomes, outcomes)
	}
	if q.workers != 0 || q.running != 0 {
		t.Errorf("%d workers and %d handlers are counted after the end", q.workers, q.running)
	}
}

func equal(a, b map[string]int) bool {
	for k, n := range b {
		if a[k] != n {
			return false
		}
	}
	return len(a) == len(b)
}

func (q *queue) wantStats(t *testing.T, want backend.Stats) {
	t.Helper()
	got, err := q.Stats(t.Context())
	got.HeadDue = time.Time{}
	if err != nil || got != want {
		t.Errorf("stats %+v, %v, want %+v", got, err, want)
	}
}

// received is a delivery of the memory store.
type received struct {
	backend.Delivery
	q     *queue
	lease lease.Lease
}

func (d *received) ID() string          { return d.Delivery.ID }
func (d *received) Attempt() int        { return d.Delivery.Attempt }
func (d *received) Size() int           { return len(d.Body) }
func (d *received) Lease() *lease.Lease { return &d.lease }

func (d *received) settle(ctx context.Context, call func() []error) error {
	return d.lease.Settle(ctx, func() error { return errors.Join(call()...) })
}

func (d *received) Ack(ctx context.Context) error {
	return d.settle(ctx, func() []error {
		if d.q.ack != nil {
			d.q.ack()
		}
		return d.q.Queue.Ack(ctx, []backend.Lease{d.lease.Token()})
	})
}

func (d *received) Nack(ctx context.Context, delay time.Duration) error {
	return d.settle(ctx, func() []error {
		return d.q.Queue.Nack(ctx, []backend.Return{{Lease: d.lease.Token(), Delay: delay}})
	})
}

func (d *received) Release(ctx context.Context) error {
	return d.settle(ctx, func() []error {
		return d.q.Queue.Nack(ctx, []backend.Return{{Lease: d.lease.Token(), Untouched: true}})
	})
}

func (d *received) Dead(ctx context.Context, reason string) error {
	return d.settle(ctx, func() []error {
		return d.q.Queue.Dead(ctx, []backend.Burial{{Lease: d.lease.Token(), Reason: reason}})
	})
}

func (d *received) Extend(ctx context.Context, length time.Duration) error {
	return lease.Extend(ctx, d.q, []*lease.Lease{&d.lease}, length, time.Now())[0]
}

func fixed(d time.Duration) Policy { return func(int, error) time.Duration { return d } }

// config returns what one worker of q needs to call h.
func (q *queue) config(h func(ctx context.Context, d Delivery) error) Config {
	return Config{
		Options:  Options{Workers: 1, Drain: time.Minute},
		Queue:    q,
		Gate:     NewGate(),
		Clock:    clockwork.NewRealClock(),
		Log:      slog.New(slog.DiscardHandler),
		Lease:    leaseLength,
		MaxDelay: time.Hour,
		Handle:   h,
		Classify: func(err error) Failure { return Failure{Err: err, Reason: err.Error()} },
		Retry:    fixed(time.Minute),
		Fallback: fixed(time.Second),
		Refetch:  fixed(time.Second),
		Observer: q,
	}
}

// runFor runs a consumer for a time.
func runFor(t *testing.T, d time.Duration, cfg Config) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	return Run(ctx, cfg)
}

func TestRunAcksWhatSucceeds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, 5)
		var seen []string
		if err := runFor(t, time.Second, q.config(func(_ context.Context, d Delivery) error {
			seen = append(seen, d.ID())
			return nil
		})); err != nil {
			t.Fatal(err)
		}
		if want := []string{"a", "b", "c", "d", "e"}; !slices.Equal(seen, want) {
			t.Errorf("handled %q, want %q", seen, want)
		}
		q.want(t, nil, map[string]int{"acked": 5})
		q.wantStats(t, backend.Stats{})
	})
}

func TestRunRetriesUntilTheMessageIsDead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, 1)
		var at []time.Duration
		began := time.Now()
		cfg := q.config(func(context.Context, Delivery) error {
			at = append(at, time.Since(began))
			return errFailed
		})
		cfg.MaxAttempts = 3
		if err := runFor(t, time.Hour, cfg); err != nil {
			t.Fatal(err)
		}
		if want := []time.Duration{0, time.Minute, 2 * time.Minute}; !slices.Equal(at, want) {
			t.Errorf("attempts at %v, want %v", at, want)
		}
		q.want(t, map[string]int{telemetry.FailedHandler: 3}, map[string]int{"retried": 2, "dead": 1})
		q.wantStats(t, backend.Stats{Dead: 1})
	})
}

// The observer hears of each handler's end, whatever ends the worker's goroutine.
func TestGoexitIsAFailure(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Config){
		"of the handler": func(cfg *Config) {
			cfg.Handle = func(context.Context, Delivery) error { runtime.Goexit(); return nil }
		},
		"of the error's methods": func(cfg *Config) {
			cfg.Classify = func(error) Failure { runtime.Goexit(); return Failure{} }
		},
		"of the retry policy": func(cfg *Config) {
			cfg.Retry = func(int, error) time.Duration { runtime.Goexit(); return 0 }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, 1)
				cfg := q.config(func(context.Context, Delivery) error { return errFailed })
				cfg.MaxAttempts = 2
				change(&cfg)
				if err := runFor(t, time.Hour, cfg); err != nil {
					t.Fatal(err)
				}
				if q.failed[telemetry.FailedHandler]+q.failed[telemetry.FailedExit] != 2 || q.running != 0 {
					t.Errorf("failures %v, %d handlers are counted after the end", q.failed, q.running)
				}
				q.wantStats(t, backend.Stats{Dead: 1})
			})
		})
	}
}

func TestRetryPolicyPanicsOrIsAbsurd(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		policy Policy
		want   time.Duration
	}{
		"panics":    {func(int, error) time.Duration { panic("oops") }, time.Second},
		"negative":  {fixed(-1), 0},
		"too long":  {fixed(time.Hour + 1), time.Hour},
		"as it may": {fixed(time.Hour), time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, 1)
				var at []time.Time
				cfg := q.config(func(context.Context, Delivery) error {
					at = append(at, time.Now())
					return errFailed
				})
				cfg.MaxAttempts, cfg.Retry = 2, tt.policy
				if err := runFor(t, 2*time.Hour, cfg); err != nil || len(at) != 2 {
					t.Fatalf("%v, attempts at %v", err, at)
				}
				if waited := at[1].Sub(at[0]); waited != tt.want {
					t.Errorf("waited %v, want %v", waited, tt.want)
				}
			})
		})
	}
}

func TestMessageOfDeadWorkersIsNotHandledAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, 1)
		for range 2 { // workers that die with the message
			if _, err := q.Receive(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			time.Sleep(leaseLength)
		}
		cfg := q.config(func(_ context.Context, d Delivery) error {
			t.Errorf("attempt %d is handled", d.Attempt())
			return nil
		})
		cfg.MaxAttempts = 2
		if err := runFor(t, time.Second, cfg); err != nil {
			t.Fatal(err)
		}
		q.want(t, map[string]int{telemetry.FailedAbandoned: 1}, nil)
		q.wantStats(t, backend.Stats{Dead: 1})
	})
}

func TestLeaseIsRenewedWhileTheHandlerRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, 1)
		var handled atomic.Int64
		cfg := q.config(func(ctx context.Context, _ Delivery) error {
			handled.Add(1)
			time.Sleep(20 * leaseLength)
			return ctx.Err()
		})
		cfg.Workers = 2
		if err := runFor(t, 30*leaseLength, cfg); err != nil || handled.Load() != 1 {
			t.Errorf("%v, handled %d times", err, handled.Load())
		}
		q.want(t, nil, map[string]int{"acked": 1})
	})
}

func TestHandlerStopsWhenItsLeaseIsLost(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err   error
		after time.Duration
		renew int
	}{
		"as the store says":       {backend.ErrLeaseLost, leaseLength / renewals, 0},
		"as the store cannot say": {backend.ErrUnavailable, leaseLength, renewals},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, 1)
				q.extend = tt.err
				var lasted time.Duration
				cfg := q.config(func(ctx context.Context, d Delivery) error {
					if d.Attempt() > 1 {
						return nil
					}
					began := time.Now()
					<-ctx.Done()
					lasted = time.Since(began)
					return context.Cause(ctx)
				})
				if err := runFor(t, time.Hour, cfg); err != nil {
					t.Fatal(err)
				}
				if lasted != tt.after {
					t.Errorf("the handler was stopped after %v, want %v", lasted, tt.after)
				}
				// Returned counts a lost lease once more: this Observer does not leave it out.
				failed := map[string]int{telemetry.FailedLeaseLost: 2}
				if tt.renew > 0 {
					failed[telemetry.FailedRenew] = tt.renew
				}
				q.want(t, failed, map[string]int{"lost": 1, "acked": 1})
			})
		})
	}
}

func TestHandlerThatIgnoresItsTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, 1)
		released := make(chan struct{})
		var attempts atomic.Int64
		cfg := q.config(func(ctx context.Context, _ Delivery) error {
			if attempts.Add(1) == 2 { // another worker has the message
				close(released)
				return nil
			}
			<-released
			return context.Cause(ctx)
		})
		cfg.Workers, cfg.Timeout = 2, time.Minute
		if err := runFor(t, time.Hour, cfg); err != nil || attempts.Load() != 2 {
			t.Errorf("%v after %d attempts", err, attempts.Load())
		}
		if q.failed[telemetry.IgnoredTimeout] != 1 || q.failed[telemetry.FailedTimeout] != 1 || q.outcomes["acked"] != 1 {
			t.Errorf("failures %v, outcomes %v", q.failed, q.outcomes)
		}
		q.wantStats(t, backend.Stats{})
	})
}

func TestRunEndsTheContextsOfHandlersThatOutliveTheDrain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ignores bool
		want    error
		took    time.Duration
	}{
		"and that return":    {false, nil, time.Minute},
		"and that ignore it": {true, ErrDrain, time.Minute + obeyWithin},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, 1)
				released := make(chan struct{})
				began := time.Now()
				err := runFor(t, time.Second, q.config(func(ctx context.Context, _ Delivery) error {
					<-ctx.Done()
					if tt.ignores {
						<-released
					}
					return context.Cause(ctx)
				}))
				if took := time.Since(began) - time.Second; !errors.Is(err, tt.want) || took != tt.took {
					t.Errorf("%v after %v, want %v after %v", err, took, tt.want, tt.took)
				}
				close(released)
				synctest.Wait()
				q.wantStats(t, backend.Stats{Ready: 1})
			})
		})
	}
}

// Two workers go on while up to four acks each are under way.
func TestWorkersGoOnWhileTheirAcksAreUnderWay(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		prefetch  int
		inProcess bool
		want      int64
	}{
		"ahead":      {100, false, 2 + 2*settlesOfWorker},
		"not ahead":  {0, false, 2},
		"in process": {100, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, 20)
				replied := make(chan struct{})
				q.ack = func() { <-replied }
				var handled atomic.Int64
				cfg := q.config(func(context.Context, Delivery) error {
					handled.Add(1)
					return nil
				})
				cfg.Workers, cfg.Prefetch, cfg.InProcess = 2, tt.prefetch, tt.inProcess
				done := make(chan error)
				go func() { done <- runFor(t, time.Minute, cfg) }()
				synctest.Wait()
				if n := handled.Load(); n != tt.want {
					t.Errorf("%d messages handled before an ack returned, want %d", n, tt.want)
				}
				close(replied)
				if err := <-done; err != nil {
					t.Error(err)
				}
				q.want(t, nil, map[string]int{"acked": 20})
			})
		})
	}
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, 20)
		var at []time.Duration
		began := time.Now()
		cfg := q.config(func(context.Context, Delivery) error {
			at = append(at, time.Since(began).Round(time.Millisecond))
			return nil
		})
		cfg.Rate = rate.NewLimiter(2, 5)
		if err := runFor(t, time.Minute, cfg); err != nil || len(at) != 20 {
			t.Fatalf("%v, %d messages", err, len(at))
		}
		if at[4] != 0 || at[5] != 500*time.Millisecond || at[19] != 7500*time.Millisecond {
			t.Errorf("handled at %v, want five at once, then two a second", at)
		}
	})
}

func TestRunEndsWhenTheQueueIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, 0)
		time.AfterFunc(time.Minute, func() { _ = q.Close() })
		if err := Run(t.Context(), q.config(func(context.Context, Delivery) error { return nil })); err != nil {
			t.Error(err)
		}
		q.want(t, nil, nil)
	})
}
