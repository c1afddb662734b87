package store_test

import (
	"maps"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/store"
)

// A script reads a due time once for neighbours with the same due time. None may get its
// neighbour's, and each has its own outcome.
func TestScheduleOfManyTimes(t *testing.T) {
	t.Parallel()
	now := time.Now().Truncate(time.Second)
	at := now.Add
	for name, unique := range map[string]time.Duration{"plain": 0, "with windows": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			c := store.Config{Client: b.raw, Prefix: "test"}
			b.Store = store.New(c, t.Name(), clockwork.NewFakeClockAt(now))
			errs := b.Schedule(b.ctx, []backend.Message{
				{ID: "a", Due: at(time.Minute), UniqueFor: unique},
				{ID: "b", Due: at(time.Minute)},
				{ID: "c", Delay: 1500 * time.Microsecond},
				{ID: "d", Delay: 1500 * time.Microsecond},
				{ID: "a", Delay: time.Hour},
				{ID: "e"},
				{ID: "f", Due: at(2*time.Minute + time.Microsecond)},
			})
			b.wantEach(errs, 7, func(i int) error {
				if i == 4 {
					return backend.ErrDuplicate
				}
				return nil
			})
			minute, soon := at(time.Minute), at(2*time.Millisecond)
			want := map[string]time.Time{"a": minute, "b": minute, "c": soon, "d": soon, "e": now, "f": at(2*time.Minute + time.Millisecond)}
			if got := b.dues(); !maps.EqualFunc(got, want, time.Time.Equal) {
				t.Errorf("due times %v, want %v", got, want)
			}
		})
	}
}

// dues are the due times of scheduled messages.
func (b *bench) dues() map[string]time.Time {
	b.t.Helper()
	ps, _, err := b.Peek(b.ctx, "", 100)
	must(b.t, err)
	dues := make(map[string]time.Time)
	for _, p := range ps {
		dues[p.ID] = p.Due
	}
	return dues
}
