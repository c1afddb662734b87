package delayq_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/memory"
)

// A pause for all holds back the consumers of every handle. Handlers that run finish, and messages
// claimed ahead reach a handler, or go back untouched, within the time that Prefetch gives them.
func TestPauseAllHoldsConsumersBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := memory.New()
		q, other := newQueue(t, delayq.WithBackend(b)), newQueue(t, delayq.WithBackend(b))
		var last atomic.Int64 // when a handler was called
		var handled atomic.Int32
		handler := func(context.Context, *delayq.Delivery) error {
			last.Store(time.Now().UnixNano())
			time.Sleep(time.Millisecond)
			handled.Add(1)
			return nil
		}
		const n = 1000
		pushMany(t, q, n)
		first := start(t, q, handler, delayq.Workers(2))
		second := start(t, other, handler, delayq.Workers(2))
		time.Sleep(50 * time.Millisecond)
		must(t, q.PauseAll(t.Context(), delayq.PauseFor(time.Hour)))
		paused := time.Now()
		time.Sleep(time.Minute)
		if late := time.Unix(0, last.Load()).Sub(paused); late > 100*time.Millisecond || handled.Load() == n {
			t.Errorf("a handler was called %v after the pause began; %d of %d messages are handled", late, handled.Load(), n)
		}
		s, err := other.Stats(t.Context())
		must(t, err)
		if !s.Paused || s.InFlight != 0 || s.Ready != int64(n-handled.Load()) || !s.PausedUntil.Equal(paused.Add(time.Hour)) {
			t.Errorf("%d are handled, and Stats returns %+v", handled.Load(), s)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if handled.Load() != n {
			t.Errorf("%d of %d messages are handled", handled.Load(), n)
		}
		must(t, first.end())
		must(t, second.end())
		wantCounts(t, q, delayq.Stats{})
	})
}

// Pause and Resume of a handle leave a pause for all as it is, and the other way round.
func TestPausesAreApart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q := newQueue(t)
		var handled atomic.Int32
		r := start(t, q, func(context.Context, *delayq.Delivery) error {
			handled.Add(1)
			return nil
		})
		wantHandled := func(n int32, when string) {
			t.Helper()
			time.Sleep(time.Minute)
			if handled.Load() != n {
				t.Errorf("%d messages are handled, want %d: %s", handled.Load(), n, when)
			}
		}
		q.Pause()
		must(t, q.PauseAll(t.Context()))
		push(t, q)
		q.Resume()
		wantHandled(0, "all are paused")
		q.Pause()
		must(t, q.ResumeAll(t.Context()))
		wantHandled(0, "the handle is paused")
		q.Resume()
		wantHandled(1, "nothing is paused")
		must(t, r.end())
	})
}
