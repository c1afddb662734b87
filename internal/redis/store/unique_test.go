package store_test

import (
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/judge"
	"github.com/delayq/delayq/internal/redis/script"
	"github.com/delayq/delayq/internal/redis/store"
	"github.com/delayq/delayq/internal/testenv"
)

func (b *bench) pushUnique(id string, window time.Duration) []error {
	return b.Schedule(b.ctx, []backend.Message{{ID: id, Body: []byte("body of " + id), UniqueFor: window}})
}

// The windows of an idle queue go by themselves, and no earlier.
func TestWindowsGoWithTheirEnd(t *testing.T) {
	t.Parallel()
	b := setup(t)
	began := time.Now()
	const window = 300 * time.Millisecond
	b.all(b.pushUnique("a", window))
	b.ack(b.next(b.Claim, time.Minute, "a"))
	await(t, "the window to go", func() bool { return len(b.left()) == 0 })
	if late := judge.Late(began.Add(window), time.Now()); late < 0 {
		t.Errorf("the id was free %v before the window's end", -late)
	}
}

func TestUniqueKeyExpiresAfterTheLongestWindow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, window := range []time.Duration{time.Minute, time.Hour, time.Second} {
		b.all(b.pushUnique(window.String(), window))
	}
	left := b.raw.PTTL(b.ctx, b.key("unique")).Val()
	if left > time.Hour+script.Resolution || left < time.Hour-patience {
		t.Errorf("the windows are kept for %v, want an hour", left)
	}
}

// Each window that opens drops two that have ended. By a given clock none of them expires.
func TestWindowsThatEndedAreDropped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	clock := clockwork.NewFakeClockAt(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))
	b.Store = store.New(store.Config{Client: b.raw, Prefix: "test"}, t.Name(), clock)
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		b.all(b.pushUnique(id, time.Millisecond))
	}
	for i, want := range []int64{4, 3, 3} {
		clock.Advance(time.Millisecond)
		b.all(b.pushUnique("later "+string(rune('a'+i)), time.Hour))
		if n := b.raw.ZCard(b.ctx, b.key("unique")).Val(); n != want {
			t.Errorf("%d windows after push %d, want %d", n, i+1, want)
		}
	}
}

// A repeated push may take long to reach a server that has just lost a reply. It knows all the same
// what its first try did.
func TestRepeatedPushIsLongOnItsWay(t *testing.T) {
	t.Parallel()
	b := on(t, testenv.Redis(t, testenv.Private()))
	lossy := b.losing(func() {
		b.ack(b.take())
		must(t, b.raw.Do(b.ctx, "client", "pause", 2500, "write").Err()) // of scripts too
	})
	b.unknown(lossy.Schedule(b.ctx, []backend.Message{{ID: "a", UniqueFor: time.Hour}}))
}

func TestPushOfATakenIDLosesItsReply(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		earlier   time.Duration // the window of an earlier push, whose message is done
		meanwhile func(*bench)
		check     func(*bench, []error)
	}{
		"it waits":   {0, (*bench).nothingMeanwhile, (*bench).all},
		"it is done": {0, func(b *bench) { b.ack(b.take()) }, (*bench).unknown},
		"it was refused": {2 * time.Hour, (*bench).nothingMeanwhile, func(b *bench, errs []error) {
			b.want(errs, backend.ErrDuplicate)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			if tt.earlier > 0 {
				b.all(b.pushUnique("a", tt.earlier))
				b.ack(b.take())
			}
			lossy := b.losing(func() { tt.meanwhile(b) })
			tt.check(b, lossy.Schedule(b.ctx, []backend.Message{{ID: "a", UniqueFor: time.Hour}}))
		})
	}
}
