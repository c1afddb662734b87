package settle_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/batcher"
	"github.com/delayq/delayq/internal/lease"
	"github.com/delayq/delayq/internal/settle"
	"github.com/delayq/delayq/memory"
)

// A fixture is a settler on a queue in memory, and the leases of messages that were taken from it.
type fixture struct {
	*testing.T
	settle.Settler
	leases []*lease.Lease
	died   int
}

func take(t *testing.T, n int) *fixture {
	t.Helper()
	clock := clockwork.NewFakeClock()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	q, err := memory.New().Open(t.Context(), "q", backend.Options{Clock: clock, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{T: t}
	f.Settler = settle.Settler{
		Store: q, Batch: batcher.ForStore(q, 100, backend.NoRoundTrip), Clock: clock, Log: log, Died: func(n int) { f.died += n },
	}
	ms := make([]backend.Message, n)
	for i := range ms {
		ms[i].ID = string(rune('a' + i))
	}
	f.none(q.Schedule(t.Context(), ms)...)
	ds, err := q.Receive(t.Context(), n, time.Minute)
	f.none(err)
	for _, d := range ds {
		l := new(lease.Lease)
		l.Take(d.Lease(), time.Minute, clock.Now(), d.Until)
		f.leases = append(f.leases, l)
	}
	return f
}

func (f *fixture) none(errs ...error) {
	f.Helper()
	if err := errors.Join(errs...); err != nil {
		f.Fatal(err)
	}
}

// holds compares what the queue has.
func (f *fixture) holds(waiting, inFlight, dead int64) {
	f.Helper()
	s, err := f.Store.Stats(f.Context())
	if f.none(err); s.Scheduled+s.Ready != waiting || s.InFlight != inFlight || s.Dead != dead {
		f.Errorf("%d wait, %d are in flight, %d are dead; want %d, %d, %d", s.Scheduled+s.Ready, s.InFlight, s.Dead, waiting, inFlight, dead)
	}
}

func TestOne(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		call          func(context.Context, *fixture, *lease.Lease) error
		waiting, dead int64
	}{
		"Ack":    {func(ctx context.Context, f *fixture, l *lease.Lease) error { return f.Ack(ctx, l) }, 0, 0},
		"Return": {func(ctx context.Context, f *fixture, l *lease.Lease) error { return f.Return(ctx, l, backend.Return{}) }, 1, 0},
		"Dead":   {func(ctx context.Context, f *fixture, l *lease.Lease) error { return f.Dead(ctx, l, "reason") }, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := take(t, 2)
			f.none(tt.call(t.Context(), f, f.leases[0]))
			f.holds(tt.waiting, 1, tt.dead)
			if err := tt.call(t.Context(), f, f.leases[0]); !errors.Is(err, lease.ErrSettled) {
				t.Errorf("once more: %v, want ErrSettled", err)
			}
			if f.died != int(tt.dead) {
				t.Errorf("told of %d new dead letters, want %d", f.died, tt.dead)
			}
		})
	}
}

// TestAll settles three messages, of which one is settled already.
func TestAll(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		call          func(context.Context, *fixture) []error
		waiting, dead int64
	}{
		"AckAll": {func(ctx context.Context, f *fixture) []error { return f.AckAll(ctx, f.leases) }, 0, 0},
		"ReturnAll": {func(ctx context.Context, f *fixture) []error {
			return f.ReturnAll(ctx, f.leases, backend.Return{Untouched: true})
		}, 2, 0},
		"DeadAll": {func(ctx context.Context, f *fixture) []error { return f.DeadAll(ctx, f.leases, "reason") }, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := take(t, 3)
			f.none(f.Ack(t.Context(), f.leases[1]))
			errs := tt.call(t.Context(), f)
			if len(errs) != 3 || errs[0] != nil || !errors.Is(errs[1], lease.ErrSettled) || errs[2] != nil {
				t.Errorf("got %v, want ErrSettled for the second", errs)
			}
			f.holds(tt.waiting, 0, tt.dead)
			if f.died != int(tt.dead) || settle.Succeeded(3, errs) != 2 {
				t.Errorf("told of %d new dead letters, want %d; %d succeeded", f.died, tt.dead, settle.Succeeded(3, errs))
			}
		})
	}
}

func TestExpired(t *testing.T) {
	t.Parallel()
	f := take(t, 3)
	var e settle.Expired
	for i, l := range f.leases {
		e.Add(l.Token(), i > 0)
	}
	f.Expired(t.Context(), e, "expired", time.Minute)
	f.holds(0, 0, 2)
	if f.died != 2 {
		t.Errorf("told of %d new dead letters, want 2", f.died)
	}
}
