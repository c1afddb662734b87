package chaos_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/chaos"
	"github.com/delayq/delayq/memory"
)

// A jumpy clock is the real one, set forward and back.
type jumpy struct {
	clockwork.Clock
	off atomic.Int64
}

func (c *jumpy) Now() time.Time                  { return c.Clock.Now().Add(c.shift()) }
func (c *jumpy) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
func (c *jumpy) Until(t time.Time) time.Duration { return t.Sub(c.Now()) }
func (c *jumpy) shift() time.Duration            { return time.Duration(c.off.Load()) }

// last sets the clock to where all that was pushed is due, and all leases have ended.
func (c *jumpy) last() chaos.Window {
	w := chaos.Window{Kind: "clock jumps", Start: time.Now().UnixNano(), Effect: 1, Jump: true}
	c.off.Store(int64(3 * time.Hour))
	w.End = time.Now().UnixNano()
	return w
}

// inMemory opens queues on one memory backend, on the jumpy clock. It stays open until the end.
type inMemory struct {
	backend.Backend
	clock *jumpy
}

func (m inMemory) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	o.Clock = m.clock
	return m.Backend.Open(ctx, name, o)
}

func (inMemory) Close() error { return nil }

func memoryVenue(t *testing.T) *venue {
	t.Helper()
	b := memory.New()
	t.Cleanup(func() { _ = b.Close() })
	m := inMemory{b, &jumpy{Clock: clockwork.NewRealClock()}}
	return &venue{
		name: "memory", inside: true, rate: 36_000, patient: time.Minute,
		opens:  []chaos.OpenFunc{func(context.Context) (backend.Backend, error) { return m, nil }},
		faults: []*fault{clockJump(m.clock)}, shift: m.clock.shift,
		settle: func(t *testing.T) chaos.Window { return m.clock.last() },
		left: func(context.Context, backend.Backend) ([]string, error) {
			if n, bytes := b.Usage(); n > 0 || bytes > 0 {
				return []string{fmt.Sprintf("%d messages of %d bytes", n, bytes)}, nil
			}
			return nil, nil
		},
	}
}

// clockJump sets the clock forward or back by up to an hour, and right again.
func clockJump(c *jumpy) *fault {
	return &fault{
		Kind: chaos.Kind{Name: "clock jumps", Weight: 1, For: 400 * time.Millisecond}, window: chaos.Window{Jump: true},
		on: func(_ *testing.T, dice *rand.Rand) {
			c.off.Store(dice.Int64N(int64(2*time.Hour)) - int64(time.Hour))
		},
		off: func(*testing.T) int { moved := c.shift() != 0; c.off.Store(0); return count(moved) },
	}
}
