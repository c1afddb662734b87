package chaos_test

import (
	"context"
	"fmt"
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
	clock := newJumper(0, 3*time.Hour, func(to time.Duration) { m.clock.off.Store(int64(to)) })
	return &venue{
		name: "memory", inside: true, rate: 36_000, patient: time.Minute,
		opens:  []chaos.OpenFunc{func(context.Context) (backend.Backend, error) { return m, nil }},
		faults: clock.jumps(400 * time.Millisecond), clock: clock, settle: clock.settle,
		left: func(context.Context, backend.Backend) ([]string, error) {
			if n, bytes := b.Usage(); n > 0 || bytes > 0 {
				return []string{fmt.Sprintf("%d messages of %d bytes", n, bytes)}, nil
			}
			return nil, nil
		},
	}
}
