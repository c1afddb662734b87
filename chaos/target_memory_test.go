package chaos

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/memory"
)

// A shiftedClock is the real one, set forward or back.
type shiftedClock struct {
	clockwork.Clock
	shift atomic.Int64
}

func (c *shiftedClock) Now() time.Time { return c.Clock.Now().Add(time.Duration(c.shift.Load())) }

func (c *shiftedClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func (c *shiftedClock) Until(t time.Time) time.Duration { return t.Sub(c.Now()) }

// clocked opens queues of a backend on a clock.
type clocked struct {
	backend.Backend
	clock clockwork.Clock
}

func (c clocked) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	o.Clock = c.clock
	return c.Backend.Open(ctx, name, o)
}

func memoryTarget(t *testing.T) *target {
	t.Helper()
	b, shifted := memory.New(), &shiftedClock{Clock: clockwork.NewRealClock()}
	clock := newStoreClock(0, 3*time.Hour, func(to time.Duration) { shifted.shift.Store(int64(to)) })
	return &target{
		name: "memory", oneProcess: true, rate: 36_000, drainTime: time.Minute,
		opens:  []OpenFunc{sharing(t, func(context.Context) (backend.Backend, error) { return clocked{b, shifted}, nil })},
		faults: jumpFaults(clock, 400*time.Millisecond), clock: clock, lastFault: clock.jumpLast,
		leftovers: func(context.Context, backend.Backend) ([]string, error) {
			if n, bytes := b.Usage(); n > 0 || bytes > 0 {
				return []string{fmt.Sprintf("%d messages of %d bytes", n, bytes)}, nil
			}
			return nil, nil
		},
	}
}
