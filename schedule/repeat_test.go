package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/memory"
	"github.com/delayq/delayq/schedule"
)

// A fleet is a group of processes on one store that repeat and consume the same messages.
type fleet struct {
	t        *testing.T
	store    backend.Backend
	queues   []delayq.Queue
	began    time.Time
	ctx      context.Context //nolint:containedctx // the test's: it ends what runs
	end      context.CancelFunc
	runs     sync.WaitGroup
	mu       sync.Mutex
	handled  map[string][]string // ids by body, in the order of the hand-outs
	problems []error
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{t: t, store: memory.New(), began: time.Now(), handled: make(map[string][]string)}
	f.ctx, f.end = context.WithCancel(t.Context())
	return f
}

// handle opens a handle on a queue of the store, as another process would.
func (f *fleet) handle(opts ...delayq.Option) delayq.Queue {
	f.t.Helper()
	q, err := delayq.New(f.ctx, "orders", append([]delayq.Option{delayq.WithBackend(f.store), delayq.WithLogger(silent)}, opts...)...)
	must(f.t, err)
	f.queues = append(f.queues, q)
	return q
}

func (f *fleet) run(do func() error) {
	f.runs.Go(func() {
		if err := do(); err != nil {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.problems = append(f.problems, err)
		}
	})
}

func (f *fleet) repeat(q delayq.Queue, name string, s schedule.Schedule) {
	f.run(func() error { return schedule.Repeat(f.ctx, q, name, s, []byte(name)) })
}

// repeatInShifts runs Repeat in one process after another, each for the length of a shift.
func (f *fleet) repeatInShifts(q delayq.Queue, name string, s schedule.Schedule, shift time.Duration) {
	f.run(func() error {
		for f.ctx.Err() == nil {
			ctx, end := context.WithTimeout(f.ctx, shift)
			err := schedule.Repeat(ctx, q, name, s, []byte(name))
			end()
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// consume keeps the ids of the messages, and an error for each that comes early.
func (f *fleet) consume(q delayq.Queue) {
	f.run(func() error {
		return q.Consume(f.ctx, func(_ context.Context, d *delayq.Delivery) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			if now := time.Now(); now.Before(d.Due) {
				f.problems = append(f.problems, fmt.Errorf("%s is due %v and came %v early", d.ID, d.Due, d.Due.Sub(now)))
			}
			f.handled[string(d.Body)] = append(f.handled[string(d.Body)], d.ID)
			return nil
		})
	})
}

// runFor runs the processes for as long, ends all calls and reports their errors.
func (f *fleet) runFor(d time.Duration) {
	f.t.Helper()
	time.Sleep(d)
	synctest.Wait()
	f.end()
	f.runs.Wait()
	for _, q := range f.queues {
		must(f.t, q.Close())
	}
	must(f.t, f.store.Close())
	for _, err := range f.problems {
		f.t.Error(err)
	}
}

// wantIDs checks that each occurrence of the schedule came once, from the beginning until a time.
func (f *fleet) wantIDs(name string, s schedule.Schedule, until time.Time) {
	f.t.Helper()
	var want []string
	for next := s.Next(f.began); !next.After(until); next = s.Next(next) {
		want = append(want, name+"@"+next.UTC().Format(time.RFC3339Nano))
	}
	if got := f.handled[name]; !slices.Equal(got, want) {
		f.t.Errorf("%s: %d occurrences came, want %d: %v", name, len(got), len(want), difference(got, want))
	}
}

// difference returns the ids that are not equally often in both lists.
func difference(got, want []string) (diff []string) {
	counts := make(map[string]int)
	for _, id := range got {
		counts[id]++
	}
	for _, id := range want {
		counts[id]--
	}
	for _, id := range slices.Sorted(maps.Keys(counts)) {
		if counts[id] != 0 {
			diff = append(diff, fmt.Sprintf("%s: %+d", id, counts[id]))
		}
	}
	return diff
}

// Ten goroutines on each of three handles repeat two schedules for a day.
func TestRepeatIsOncePerOccurrence(t *testing.T) {
	bubble(t, func(t *testing.T) {
		schedules := map[string]schedule.Schedule{
			"minutes": schedule.Every(7 * time.Minute),
			"cron":    mustCron(t, "5,35 */3 * * *", time.UTC),
		}
		f := newFleet(t)
		for range 3 {
			q := f.handle()
			for name, s := range schedules {
				for range 10 {
					f.repeat(q, name, s)
				}
			}
		}
		f.consume(f.queues[0])
		f.consume(f.queues[1])
		f.runFor(24 * time.Hour)
		for name, s := range schedules {
			f.wantIDs(name, s, f.began.Add(24*time.Hour))
		}
	})
}

// A skewed clock differs from the store's.
type skewed struct {
	clockwork.Clock
	by time.Duration
}

func (c skewed) Now() time.Time                  { return c.Clock.Now().Add(c.by) }
func (c skewed) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
func (c skewed) Until(t time.Time) time.Duration { return t.Sub(c.Now()) }

// ownClock is a store that ignores the clock of the process.
type ownClock struct{ backend.Backend }

func (b ownClock) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	o.Clock = nil
	return b.Backend.Open(ctx, name, o)
}

// The clocks of three processes are up to an hour apart, and none is the store's.
func TestRepeatWhileClocksDiffer(t *testing.T) {
	t.Parallel()
	for _, skews := range [][]time.Duration{
		{-30 * time.Minute, 0, 30 * time.Minute}, {0, time.Hour}, {-time.Hour, 0}, {3 * time.Hour, 2 * time.Hour}, {-3 * time.Hour, -2 * time.Hour},
	} {
		t.Run(fmt.Sprint(skews), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f, s := newFleet(t), schedule.Every(10*time.Minute)
				for _, by := range skews {
					q := f.handle(delayq.WithBackend(ownClock{f.store}), delayq.WithClock(skewed{clockwork.NewRealClock(), by}))
					f.repeatInShifts(q, "report", s, 7*time.Minute)
				}
				f.consume(f.queues[0])
				f.runFor(24 * time.Hour)
				// A process whose clock is behind the store's began with an earlier occurrence,
				// and one whose clock is ahead with a later one.
				behind, ahead := slices.Min(skews), slices.Max(skews)
				counts := make(map[string]int)
				for _, id := range f.handled["report"] {
					if counts[id]++; counts[id] > 1 {
						t.Errorf("%s came %d times", id, counts[id])
					}
				}
				for next := s.Next(f.began.Add(max(behind, 0))); next.Before(f.began.Add(24*time.Hour + min(ahead, 0))); next = s.Next(next) {
					if id := "report@" + next.Format(time.RFC3339Nano); counts[id] != 1 {
						t.Errorf("%s came %d times", id, counts[id])
					}
				}
			})
		})
	}
}

// A settable clock is ahead until it is set right.
type settable struct {
	clockwork.Clock
	ahead *atomic.Int64
}

func (c settable) Now() time.Time                  { return c.Clock.Now().Add(time.Duration(c.ahead.Load())) }
func (c settable) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
func (c settable) Until(t time.Time) time.Duration { return t.Sub(c.Now()) }

// The clock of the only process is ahead at first. No occurrence after it was set back is missing.
func TestRepeatAfterTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{2 * time.Hour, 30 * time.Hour} {
		t.Run(ahead.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f, s := newFleet(t), schedule.Every(time.Hour)
				clock := settable{clockwork.NewRealClock(), new(atomic.Int64)}
				clock.ahead.Store(int64(ahead))
				q := f.handle(delayq.WithBackend(ownClock{f.store}), delayq.WithClock(clock))
				f.repeat(q, "report", s)
				f.consume(q)
				time.Sleep(90 * time.Second) // virtual: Repeat sleeps by then
				clock.ahead.Store(0)
				f.runFor(2 * 24 * time.Hour)
				f.wantIDs("report", s, f.began.Add(2*24*time.Hour))
			})
		})
	}
}

// A store that fails for a while is down when the clock is set back.
type downUntil struct {
	backend.Backend
	up time.Time
}

func (d downUntil) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	q, err := d.Backend.Open(ctx, name, o)
	return downQueue{q, d.up}, err
}

type downQueue struct {
	backend.Queue
	up time.Time
}

func (d downQueue) Schedule(ctx context.Context, ms []backend.Message) []error {
	if time.Now().Before(d.up) {
		return backend.FailAll(len(ms), backend.ErrUnavailable)
	}
	return d.Queue.Schedule(ctx, ms)
}

// The clock is set back while the store is down. No occurrence after that is missing.
func TestRepeatAfterTheClockIsSetBackDuringAFailure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, s := newFleet(t), schedule.Every(time.Hour)
		clock := settable{clockwork.NewRealClock(), new(atomic.Int64)}
		clock.ahead.Store(int64(2 * time.Hour))
		q := f.handle(delayq.WithBackend(downUntil{ownClock{f.store}, time.Now().Add(2 * time.Minute)}), delayq.WithClock(clock))
		f.repeat(q, "report", s)
		f.consume(q)
		time.Sleep(90 * time.Second) // virtual: Repeat sleeps by then
		clock.ahead.Store(0)
		f.runFor(24 * time.Hour)
		f.wantIDs("report", s, f.began.Add(24*time.Hour))
	})
}

// A push that fails for good ends Repeat at once.
func TestRepeatEndsWithItsPush(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := memory.New()
		q, err := delayq.New(t.Context(), "orders", delayq.WithBackend(b), delayq.WithLogger(silent))
		must(t, err)
		began := time.Now()
		must(t, b.Close())
		must(t, schedule.Repeat(t.Context(), q, "report", schedule.Every(24*time.Hour), nil))
		if took := time.Since(began); took > 0 {
			t.Errorf("Repeat ended after %v", took)
		}
		must(t, q.Close())
	})
}

func TestRepeatOnAFakeClock(t *testing.T) {
	t.Parallel()
	clock := clockwork.NewFakeClockAt(time.Date(2026, 5, 1, 12, 30, 0, 0, time.UTC))
	q := newQueue(t, delayq.WithClock(clock))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- schedule.Repeat(ctx, q, "report", schedule.Every(time.Hour), []byte("figures"), delayq.Header("to", "all"))
	}()
	for hour := 13; hour < 16; hour++ {
		want := time.Date(2026, 5, 1, hour, 0, 0, 0, time.UTC)
		eventually(t, "the next occurrence is scheduled", func() bool { return stats(t, q).HeadDue.Equal(want) })
		must(t, clock.BlockUntilContext(ctx, 1))
		for clock.Now().Before(want) {
			clock.Advance(10 * time.Minute)
		}
		d := receive(t, q)
		if d.ID != "report@"+want.Format(time.RFC3339) || !d.Due.Equal(want) || string(d.Body) != "figures" || d.Headers["to"] != "all" {
			t.Fatalf("got %+v, want the occurrence of %v", d, want)
		}
		must(t, d.Ack(ctx))
	}
	stop()
	must(t, <-ended)
}

// A push to a store that fails is tried again until a minute after the occurrence.
func TestRepeatOutlivesFailures(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, log := newFleet(t), &journal{}
		b := lossy{f.store, func() bool {
			since := time.Since(f.began)
			return since > 10*time.Minute && since < 15*time.Minute+30*time.Second
		}}
		q := f.handle(delayq.WithBackend(b), log.Logger())
		f.repeat(q, "report", schedule.Every(time.Minute))
		f.consume(q)
		f.runFor(20*time.Minute + time.Second)
		// Minute 11 was pushed in minute 10. Minute 15 is pushed half a minute late.
		away := f.began.Add(11 * time.Minute)
		var want []string
		for m := f.began.Add(time.Minute); !m.After(f.began.Add(20 * time.Minute)); m = m.Add(time.Minute) {
			if !m.After(away) || m.After(f.began.Add(14*time.Minute)) {
				want = append(want, "report@"+m.UTC().Format(time.RFC3339))
			}
		}
		if got := f.handled["report"]; !slices.Equal(got, want) {
			t.Errorf("differs: %v", difference(got, want))
		}
		log.Want(t, "trying again", "left out", "the store is away", "repeat=report")
	})
}

// limited is a schedule with an end.
type limited struct {
	schedule.Schedule
	until time.Time
}

func (s limited) Next(after time.Time) time.Time {
	if next := s.Schedule.Next(after); next.Before(s.until) {
		return next
	}
	return time.Time{}
}

func TestRepeatEndsWithItsSchedule(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, log := newFleet(t), &journal{}
		q := f.handle(log.Logger())
		s := limited{schedule.Every(time.Hour), f.began.Add(5*time.Hour + 1)}
		must(t, schedule.Repeat(t.Context(), q, "report", s, []byte("report")))
		if took := time.Since(f.began); took > 5*time.Hour {
			t.Errorf("it went on for %v", took)
		}
		log.Want(t, "no further occurrence", "repeat=report")
		f.consume(q)
		f.runFor(time.Hour)
		f.wantIDs("report", schedule.Every(time.Hour), f.began.Add(5*time.Hour))
	})
}

// An occurrence years ahead is pushed when it is near enough for its id to stay taken.
func TestRepeatOfLeapDays(t *testing.T) {
	bubble(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2000, 3, 1, 0, 0, 0, 0, time.UTC)))
		f := newFleet(t)
		q := f.handle()
		f.repeat(q, "leap", mustCron(t, "0 0 29 2 *", time.UTC))
		time.Sleep(2 * 365 * 24 * time.Hour)
		synctest.Wait()
		wantEmpty(t, q)
		time.Sleep(2 * 366 * 24 * time.Hour)
		d := receive(t, q)
		if want := "leap@2004-02-29T00:00:00Z"; d.ID != want {
			t.Errorf("got %s, want %s", d.ID, want)
		}
		must(t, d.Ack(t.Context()))
		f.runFor(0)
	})
}

func TestRepeatEndsWithTheQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q, err := delayq.New(t.Context(), "orders", delayq.InMemory())
		must(t, err)
		ended := make(chan error, 1)
		go func() { ended <- schedule.Repeat(t.Context(), q, "report", schedule.Every(time.Hour), nil) }()
		synctest.Wait()
		must(t, q.Close())
		must(t, <-ended)
	})
}

// Close returns after Repeat, also while the store does not reply to its push.
func TestCloseWaitsForRepeat(t *testing.T) {
	bubble(t, func(t *testing.T) {
		replies := make(chan struct{})
		b := lossy{memory.New(), func() bool { <-replies; return false }}
		q, err := delayq.New(t.Context(), "orders", delayq.WithBackend(b))
		must(t, err)
		var ended, closed atomic.Bool
		var calls sync.WaitGroup
		calls.Go(func() {
			if err := schedule.Repeat(t.Context(), q, "report", schedule.Every(time.Hour), nil); err != nil {
				t.Error(err)
			}
			ended.Store(true)
		})
		synctest.Wait()
		calls.Go(func() {
			if err := q.Close(); err != nil {
				t.Error(err)
			}
			if !ended.Load() {
				t.Error("Close returned before Repeat")
			}
			closed.Store(true)
		})
		synctest.Wait()
		if closed.Load() {
			t.Error("Close does not wait for the push")
		}
		close(replies)
		calls.Wait()
		must(t, b.Close())
	})
}

func TestRepeatOnAClosedQueue(t *testing.T) {
	t.Parallel()
	q, err := delayq.New(t.Context(), "orders", delayq.InMemory())
	must(t, err)
	must(t, q.Close())
	err = schedule.Repeat(t.Context(), q, "report", schedule.Every(time.Hour), nil)
	wantIs(t, err, delayq.ErrClosed)
	var op *delayq.OpError
	if errors.As(err, &op); op.Op != "repeat" || op.Queue != "orders" || op.ID != "report" {
		t.Errorf("error %+v does not name operation, queue and message", op)
	}
}

func TestRepeatThatNeverBegins(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(t.Context())
	end()
	var none context.Context
	q := newQueue(t)
	must(t, schedule.Repeat(ended, q, "report", schedule.Every(time.Hour), nil))
	wantInvalid(t, schedule.Repeat(none, q, "report", schedule.Every(time.Hour), nil), "context", "nil")
	wantEmpty(t, q)
}

// A wrapper hides from Repeat the calls that it needs.
func TestRepeatOnAWrappedQueue(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	wrapped := struct{ delayq.Queue }{q}
	wantInvalid(t, schedule.Repeat(t.Context(), wrapped, "report", schedule.Every(time.Hour), nil), "queue", "struct")
	wantEmpty(t, q)
	wantInvalid(t, schedule.Repeat(t.Context(), nil, "report", schedule.Every(time.Hour), nil), "queue", "nil")
}

func TestRepeatWithoutTheFeatures(t *testing.T) {
	t.Parallel()
	for _, f := range []backend.Feature{backend.OwnIDs, backend.UniqueWindows} {
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			q := newQueue(t, delayq.WithBackend(lacking{memory.New(), []backend.Feature{f}}))
			err := schedule.Repeat(t.Context(), q, "report", schedule.Every(time.Hour), nil)
			wantIs(t, err, delayq.ErrUnsupported)
			var unsupported *delayq.UnsupportedError
			if !errors.As(err, &unsupported) || unsupported.Backend != "memory" || unsupported.Op != f.String() {
				t.Errorf("error %v does not name backend and feature", err)
			}
		})
	}
}

// broken is a schedule that panics.
type broken struct{}

func (*broken) Next(time.Time) time.Time { panic("oops") }

func TestRepeatWithAScheduleThatPanics(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	err := schedule.Repeat(t.Context(), q, "report", (*broken)(nil), nil)
	if err == nil || !strings.Contains(err.Error(), "schedule panicked: oops") {
		t.Errorf("error %v, want the panic", err)
	}
	wantIs(t, err, err)
	wantEmpty(t, q)
}

// brokenLog is a log handler that panics.
type brokenLog struct{ slog.Handler }

func (brokenLog) Handle(context.Context, slog.Record) error { panic("oops") }

func TestRepeatWithALoggerThatPanics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q := newQueue(t, delayq.WithLogger(slog.New(brokenLog{slog.Default().Handler()})))
		must(t, schedule.Repeat(t.Context(), q, "ended", limited{schedule.Every(time.Hour), time.Now()}, nil))
	})
}

// standing is a schedule whose next occurrence is the time given.
type standing struct{}

func (standing) Next(after time.Time) time.Time { return after }

// endless is a schedule whose occurrence is later than any store accepts.
type endless struct{}

func (endless) Next(time.Time) time.Time { return backend.LatestDue.Add(1) }

func TestRepeatRejectsBadArguments(t *testing.T) {
	t.Parallel()
	hourly := schedule.Every(time.Hour)
	for name, tt := range map[string]struct {
		name        string
		schedule    schedule.Schedule
		body        []byte
		opts        []delayq.PushOption
		what, value string
	}{
		"no name":         {"", hourly, nil, nil, "name", `""`},
		"long name":       {strings.Repeat("n", 201), hourly, nil, nil, "name", "nnn"},
		"name with a NUL": {"a\x00", hourly, nil, nil, "name", `a\x00`},
		"no schedule":     {"a", nil, nil, nil, "schedule", "nil"},
		"standing":        {"a", standing{}, nil, nil, "occurrence", "2026"},
		"endless":         {"a", endless{}, nil, nil, "due time", "2200"},
		"large body":      {"a", hourly, make([]byte, backend.MaxBody+1), nil, "body", "16777217 bytes"},
		"an id":           {"a", hourly, nil, []delayq.PushOption{delayq.ID("x")}, "push option", "ID"},
		"a window":        {"a", hourly, nil, []delayq.PushOption{delayq.UniqueFor(time.Hour)}, "push option", "UniqueFor"},
		"a due time":      {"a", hourly, nil, []delayq.PushOption{delayq.At(time.Now())}, "push option", "At"},
		"a delay":         {"a", hourly, nil, []delayq.PushOption{delayq.After(time.Hour)}, "push option", "After"},
		"a spread":        {"a", hourly, nil, []delayq.PushOption{delayq.Spread(time.Minute)}, "push option", "Spread"},
		"a replacement":   {"a", hourly, nil, []delayq.PushOption{delayq.Replace()}, "push option", "Replace"},
		"attempts":        {"a", hourly, nil, []delayq.PushOption{delayq.Attempts(3)}, "push option", "limit"},
		"an expiry":       {"a", hourly, nil, []delayq.PushOption{delayq.ExpiresAfter(time.Hour)}, "push option", "limit"},
		"no option":       {"a", hourly, nil, []delayq.PushOption{nil}, "push option", "nil"},
		"reserved header": {"a", hourly, nil, []delayq.PushOption{delayq.Header("delayq-x", "")}, "header key", "delayq-x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newQueue(t, delayq.WithClock(clockwork.NewFakeClockAt(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))))
			wantInvalid(t, schedule.Repeat(t.Context(), q, tt.name, tt.schedule, tt.body, tt.opts...), tt.what, tt.value)
			wantEmpty(t, q)
		})
	}
}

// A change of the body after the call does not reach the messages.
func TestRepeatCopiesTheBody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t)
		q := f.handle()
		body := []byte("report")
		f.run(func() error { return schedule.Repeat(f.ctx, q, "report", schedule.Every(time.Hour), body) })
		synctest.Wait()
		copy(body, "xxxxxx")
		f.consume(q)
		f.runFor(2 * time.Hour)
		f.wantIDs("report", schedule.Every(time.Hour), f.began.Add(2*time.Hour))
	})
}
