package handle

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A thousand idle handles claim as often as 98, unless that makes them sleep too long.
func TestInterval(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		open                int
		poll, longest, want time.Duration
	}{
		{0, time.Second, 0, time.Second},
		{98, time.Second, 0, time.Second},
		{980, time.Second, 0, 10 * time.Second},
		{4900, time.Second, 0, 50 * time.Second},
		{5000, time.Second, 10 * time.Second, 10 * time.Second},
		{490, time.Second, 10 * time.Second, 5 * time.Second},
		{9000, time.Minute, time.Minute, time.Minute},
	} {
		h := &Hub{Poll: tt.poll, MaxPoll: tt.longest, open: tt.open}
		if got := h.interval(); got != tt.want {
			t.Errorf("%d handles: %v, want %v", tt.open, got, tt.want)
		}
	}
}

// A wake-up reaches all handles of its name that have a fetcher, and no others. The backend is told
// of a name's first handle and of its last.
func TestHub(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var told []string
		var fetchers atomic.Int64
		hub := &Hub{
			Poll:     poll,
			Follow:   func(name string, log *slog.Logger) { told = append(told, "+"+name); log.Info("followed") },
			Unfollow: func(name string) { told = append(told, "-"+name) },
			Go: func(fetch func()) {
				fetchers.Add(1)
				go func() { defer fetchers.Add(-1); fetch() }()
			},
		}
		var all []fixture
		for _, name := range []string{"a", "a", "b", "c"} {
			all = append(all, openOn(t, hub, new(store), func(s *Source) { s.Name = name }))
		}
		for _, f := range all[:3] {
			f.receive(t.Context(), 1)
		}
		if hub.Handles() != 3 || fetchers.Load() != 3 || all[0].log.Len() == 0 || all[1].log.Len() > 0 {
			t.Errorf("%d handles, %d fetchers", hub.Handles(), fetchers.Load())
		}
		count := func(what string, want ...int) {
			t.Helper()
			synctest.Wait()
			var got []int
			for _, f := range all {
				got = append(got, len(f.store.claims()))
			}
			equal(t, what, got, want)
		}
		count("at first", 1, 1, 1, 0)
		hub.Wake("a", time.Time{})
		count("a", 2, 2, 1, 0)
		hub.Wake("c", time.Time{})
		count("c, without a fetcher", 2, 2, 1, 0)
		hub.WakeAll()
		count("all", 3, 3, 2, 0)
		for _, f := range all {
			_ = f.Close()
		}
		equal(t, "told", told, []string{"+a", "+b", "-a", "-b"})
		if hub.Handles() != 0 || fetchers.Load() != 0 {
			t.Errorf("at the end %d handles, %d fetchers", hub.Handles(), fetchers.Load())
		}
		hub.Wake("a", time.Time{})
		count("closed", 3, 3, 2, 0)
	})
}

// A handle can be woken by more names, for a time.
func TestMoreNames(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var told []string
		hub := &Hub{
			Poll:     poll,
			Follow:   func(name string, _ *slog.Logger) { told = append(told, "+"+name) },
			Unfollow: func(name string) { told = append(told, "-"+name) },
		}
		f := openOn(t, hub, new(store), func(s *Source) { s.Name = "a" })
		f.receive(t.Context(), 1)
		claims := func(want int) {
			t.Helper()
			synctest.Wait()
			if got := len(f.store.claims()); got != want {
				t.Errorf("%d claims, want %d", got, want)
			}
		}
		hub.Also("a", "b")
		hub.Also("a", "b")
		claims(1)
		hub.Wake("b", time.Time{})
		claims(2)
		hub.NoMore("a", "b")
		hub.NoMore("a", "b")
		hub.Wake("b", time.Time{})
		claims(2)
		hub.Wake("a", time.Time{})
		claims(3)
		_ = f.Close()
		equal(t, "told", told, []string{"+a", "+b", "-b", "-a"})
	})
}
