package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/memory"
)

// A fleet is processes on one store that repeat and consume the same.
type fleet struct {
	t        *testing.T
	ctx      context.Context //nolint:containedctx // the test's: it ends what runs
	end      context.CancelFunc
	runs     sync.WaitGroup
	mu       sync.Mutex
	handled  map[string][]string // ids by body, in the order of the hand-outs
	problems []error
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{t: t, handled: make(map[string][]string)}
	f.ctx, f.end = context.WithCancel(t.Context())
	return f
}

// handle opens a handle on a queue of the store, as another process would.
func (f *fleet) handle(b backend.Backend, opts ...delayq.Option) delayq.Queue {
	f.t.Helper()
	q, err := delayq.New(f.ctx, "orders", append([]delayq.Option{delayq.WithBackend(b), delayq.WithLogger(silent)}, opts...)...)
	must(f.t, err)
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

func (f *fleet) repeat(q delayq.Queue, name string, s delayq.Schedule) {
	f.run(func() error { return q.Repeat(f.ctx, name, s, []byte(name)) })
}

// repeatInShifts has process after process repeat it, each for a while.
func (f *fleet) repeatInShifts(q delayq.Queue, name string, s delayq.Schedule, shift time.Duration) {
	f.run(func() error {
		for f.ctx.Err() == nil {
			ctx, end := context.WithTimeout(f.ctx, shift)
			err := q.Repeat(ctx, name, s, []byte(name))
			end()
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// consume notes what comes, and that nothing comes early.
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

// stop ends all and waits.
func (f *fleet) stop(qs ...delayq.Queue) {
	f.t.Helper()
	f.end()
	f.runs.Wait()
	for _, q := range qs {
		must(f.t, q.Close())
	}
	for _, err := range f.problems {
		f.t.Error(err)
	}
}

// wantIDs checks that each occurrence of the schedule came once, from one time to another.
func (f *fleet) wantIDs(name string, s delayq.Schedule, after, until time.Time) {
	f.t.Helper()
	var want []string
	for next := s.Next(after); !next.After(until); next = s.Next(next) {
		want = append(want, name+"@"+next.UTC().Format(time.RFC3339Nano))
	}
	if got := f.handled[name]; !slices.Equal(got, want) {
		f.t.Errorf("%s: %d occurrences came, want %d: %v", name, len(got), len(want), difference(got, want))
	}
}

// difference says which ids are not in both lists, or more than once.
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
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		schedules := map[string]delayq.Schedule{
			"minutes": delayq.Every(7 * time.Minute),
			"cron":    mustCron(t, "5,35 */3 * * *", time.UTC),
		}
		f, b, began := newFleet(t), memory.New(), time.Now()
		qs := make([]delayq.Queue, 3)
		for i := range qs {
			qs[i] = f.handle(b)
			for name, s := range schedules {
				for range 10 {
					f.repeat(qs[i], name, s)
				}
			}
		}
		f.consume(qs[0])
		f.consume(qs[1])
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		f.stop(qs...)
		for name, s := range schedules {
			f.wantIDs(name, s, began, began.Add(24*time.Hour))
		}
		must(t, b.Close())
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

// ownClock is a store that goes by its own clock, whatever the clock of the process.
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
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, b, s := newFleet(t), memory.New(), delayq.Every(10*time.Minute)
				qs := make([]delayq.Queue, len(skews))
				for i, by := range skews {
					qs[i] = f.handle(ownClock{b}, delayq.WithClock(skewed{clockwork.NewRealClock(), by}))
					f.repeatInShifts(qs[i], "report", s, 7*time.Minute)
				}
				f.consume(qs[0])
				began := time.Now()
				time.Sleep(24 * time.Hour)
				synctest.Wait()
				f.stop(qs...)
				// Those that began behind the store's clock, or ahead of it, began with an earlier occurrence or a later one.
				behind, ahead := slices.Min(skews), slices.Max(skews)
				got := f.handled["report"]
				counts := make(map[string]int)
				for _, id := range got {
					if counts[id]++; counts[id] > 1 {
						t.Errorf("%s came %d times", id, counts[id])
					}
				}
				for next := s.Next(began.Add(max(behind, 0))); next.Before(began.Add(24*time.Hour + min(ahead, 0))); next = s.Next(next) {
					if id := "report@" + next.Format(time.RFC3339Nano); counts[id] != 1 {
						t.Errorf("%s came %d times", id, counts[id])
					}
				}
				must(t, b.Close())
			})
		})
	}
}

func TestRepeatOnAFakeClock(t *testing.T) {
	t.Parallel()
	clock := clockwork.NewFakeClockAt(time.Date(2026, 5, 1, 12, 30, 0, 0, time.UTC))
	q := newQueue(t, delayq.WithClock(clock))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- q.Repeat(ctx, "report", delayq.Every(time.Hour), []byte("figures"), delayq.Header("to", "all"))
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

// A store that fails for a while is tried again. What it was to have been told meanwhile comes if its time has not passed, or
// just has.
func TestRepeatOutlivesFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, s, began := newFleet(t), newSeam(), time.Now()
		log := &journal{}
		s.before = func(_ context.Context, op string) error {
			if since := time.Since(began); op == "schedule" && since > 10*time.Minute && since < 15*time.Minute+30*time.Second {
				return errors.New("the store is away")
			}
			return nil
		}
		q := f.handle(s, log.logger())
		f.repeat(q, "report", delayq.Every(time.Minute))
		f.consume(q)
		time.Sleep(20*time.Minute + time.Second)
		synctest.Wait()
		f.stop(q)
		// Minute 11 was pushed in minute 10. Minute 15 is pushed half a minute late.
		away := began.Add(11 * time.Minute)
		var want []string
		for m := began.Add(time.Minute); !m.After(began.Add(20 * time.Minute)); m = m.Add(time.Minute) {
			if !m.After(away) || m.After(began.Add(14*time.Minute)) {
				want = append(want, "report@"+m.UTC().Format(time.RFC3339))
			}
		}
		if got := f.handled["report"]; !slices.Equal(got, want) {
			t.Errorf("differs: %v", difference(got, want))
		}
		for _, said := range []string{"trying again", "left out", "the store is away"} {
			if !strings.Contains(log.String(), said) {
				t.Errorf("the log does not say %q", said)
			}
		}
		must(t, s.Close())
	})
}

// limited is a schedule with an end.
type limited struct {
	delayq.Schedule
	until time.Time
}

func (s limited) Next(after time.Time) time.Time {
	if next := s.Schedule.Next(after); next.Before(s.until) {
		return next
	}
	return time.Time{}
}

func TestRepeatEndsWithItsSchedule(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, b, began := newFleet(t), memory.New(), time.Now()
		var log journal
		q := f.handle(b, log.logger())
		s := limited{delayq.Every(time.Hour), began.Add(5*time.Hour + 1)}
		must(t, q.Repeat(t.Context(), "report", s, []byte("report")))
		if took := time.Since(began); took > 5*time.Hour {
			t.Errorf("it went on for %v", took)
		}
		wantLogged(t, &log, "no further occurrence", "repeat=report")
		f.consume(q)
		time.Sleep(time.Hour)
		synctest.Wait()
		f.stop(q)
		f.wantIDs("report", delayq.Every(time.Hour), began, began.Add(5*time.Hour))
		must(t, b.Close())
	})
}

// An occurrence that is years away is pushed when it is near enough for its id to stay taken.
func TestRepeatOfLeapDays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2000, 3, 1, 0, 0, 0, 0, time.UTC)))
		f, b := newFleet(t), memory.New()
		q := f.handle(b)
		f.repeat(q, "leap", mustCron(t, "0 0 29 2 *", time.UTC))
		time.Sleep(2 * 365 * 24 * time.Hour)
		synctest.Wait()
		wantCounts(t, q, delayq.Stats{})
		time.Sleep(2 * 366 * 24 * time.Hour)
		d := receive(t, q)
		if want := "leap@2004-02-29T00:00:00Z"; d.ID != want {
			t.Errorf("got %s, want %s", d.ID, want)
		}
		must(t, d.Ack(t.Context()))
		f.stop(q)
		must(t, b.Close())
	})
}

func TestRepeatEndsWithTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, err := delayq.New(t.Context(), "orders")
		must(t, err)
		ended := make(chan error, 1)
		go func() { ended <- q.Repeat(t.Context(), "report", delayq.Every(time.Hour), nil) }()
		synctest.Wait()
		must(t, q.Close())
		must(t, <-ended)
	})
}

// standing is a schedule that does not go on.
type standing struct{}

func (standing) Next(after time.Time) time.Time { return after }

// endless is one whose occurrence no store takes.
type endless struct{}

func (endless) Next(time.Time) time.Time { return backend.LatestDue.Add(1) }

func TestBadRepeatIsRefused(t *testing.T) {
	t.Parallel()
	hourly := delayq.Every(time.Hour)
	for name, tt := range map[string]struct {
		name        string
		schedule    delayq.Schedule
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
		"no option":       {"a", hourly, nil, []delayq.PushOption{nil}, "push option", "nil"},
		"reserved header": {"a", hourly, nil, []delayq.PushOption{delayq.Header("delayq-x", "")}, "header key", "delayq-x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.wantUnchanged(t, func() {
				wantInvalid(t, s.Repeat(t.Context(), tt.name, tt.schedule, tt.body, tt.opts...), tt.what, tt.value)
			})
		})
	}
}

// What the caller does to the body afterwards does not reach the messages.
func TestRepeatCopiesTheBody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, b := newFleet(t), memory.New()
		q := f.handle(b)
		body := []byte("report")
		f.run(func() error { return q.Repeat(f.ctx, "report", delayq.Every(time.Hour), body) })
		synctest.Wait()
		copy(body, "xxxxxx")
		for range 2 {
			d := receiveWithin(t, q, 2*time.Hour)
			if string(d.Body) != "report" {
				t.Errorf("body %q", d.Body)
			}
			must(t, d.Ack(t.Context()))
		}
		f.stop(q)
		must(t, b.Close())
	})
}

func receiveWithin(t *testing.T, q delayq.Queue, d time.Duration) *delayq.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	got, err := q.Receive(ctx)
	must(t, err)
	return got
}
