package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

// die makes n messages dead letters, named by their numbers from first on.
func die(t *testing.T, q delayq.Queue, first, n int) {
	t.Helper()
	for i := range n {
		_, err := q.Push(t.Context(), nil, delayq.ID(fmt.Sprint(first+i)))
		must(t, err)
		d, err := q.Receive(t.Context())
		must(t, err)
		must(t, d.DeadLetter(t.Context(), "for the test"))
	}
}

func deadIDs(t *testing.T, q delayq.Queue) (ids []string) {
	t.Helper()
	for l, err := range q.Dead().All(t.Context()) {
		must(t, err)
		ids = append(ids, l.ID)
	}
	return ids
}

func TestDeadLetterRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := delayq.New(t.Context(), "q", delayq.InMemory(), delayq.DeadLetterRetention(30*time.Hour, 3))
		must(t, err)
		defer func() { must(t, q.Close()) }()
		die(t, q, 0, 5)
		time.Sleep(2 * time.Minute)
		if ids := deadIDs(t, q); fmt.Sprint(ids) != "[2 3 4]" {
			t.Errorf("two minutes later there are %v", ids)
		}
		time.Sleep(24 * time.Hour)
		die(t, q, 5, 1)
		time.Sleep(7 * time.Hour)
		if ids := deadIDs(t, q); fmt.Sprint(ids) != "[5]" {
			t.Errorf("31 hours after the first deaths there are %v", ids)
		}
		die(t, q, 6, 10) // so many at once are too many for ten minutes
		synctest.Wait()
		if ids := deadIDs(t, q); len(ids) != 3 {
			t.Errorf("after ten more deaths there are %v", ids)
		}
	})
}

func TestDeadLettersAreKeptByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := delayq.New(t.Context(), "q", delayq.InMemory())
		must(t, err)
		defer func() { must(t, q.Close()) }()
		die(t, q, 0, 20)
		time.Sleep(delayq.DefaultDeadLetterAge - time.Minute)
		if n := len(deadIDs(t, q)); n != 20 {
			t.Errorf("%d letters of 20 are left within the default age", n)
		}
		time.Sleep(12 * time.Minute)
		if n := len(deadIDs(t, q)); n != 0 {
			t.Errorf("%d letters are left after the default age", n)
		}
	})
}

func TestNoRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := delayq.New(t.Context(), "q", delayq.InMemory(), delayq.DeadLetterRetention(0, 0))
		must(t, err)
		defer func() { must(t, q.Close()) }()
		die(t, q, 0, 2)
		time.Sleep(10 * delayq.DefaultDeadLetterAge)
		if n := len(deadIDs(t, q)); n != 2 {
			t.Errorf("%d letters of 2 are left", n)
		}
	})
}

func TestTrim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := delayq.New(t.Context(), "q", delayq.InMemory(), delayq.DeadLetterRetention(0, 0))
		must(t, err)
		defer func() { must(t, q.Close()) }()
		die(t, q, 0, 2500)
		time.Sleep(time.Hour)
		die(t, q, 2500, 2)
		if n, err := q.Dead().Trim(t.Context(), 0, 2400); n != 102 || err != nil {
			t.Errorf("Trim by count returns %d, %v", n, err)
		}
		if n, err := q.Dead().Trim(t.Context(), time.Hour, 0); n != 2398 || err != nil {
			t.Errorf("Trim by age returns %d, %v", n, err)
		}
		if ids := deadIDs(t, q); fmt.Sprint(ids) != "[2500 2501]" {
			t.Errorf("there are %v", ids)
		}
	})
}

func TestBadRetention(t *testing.T) {
	q, err := delayq.New(t.Context(), "q", delayq.InMemory())
	must(t, err)
	defer func() { must(t, q.Close()) }()
	for _, bad := range []struct {
		age   time.Duration
		count int
	}{{-1, 0}, {time.Microsecond, 0}, {backend.MaxDelay + 1, 0}, {0, -1}, {time.Hour, 1<<30 + 1}} {
		if q, err := delayq.New(t.Context(), "q", delayq.InMemory(), delayq.DeadLetterRetention(bad.age, bad.count)); !errors.Is(err, delayq.ErrInvalid) {
			t.Errorf("a retention of %v, %d: got %v, %v", bad.age, bad.count, q, err)
		}
		if n, err := q.Dead().Trim(t.Context(), bad.age, bad.count); n != 0 || !errors.Is(err, delayq.ErrInvalid) {
			t.Errorf("Trim of %v, %d returns %d, %v", bad.age, bad.count, n, err)
		}
	}
	if _, err := q.Dead().Trim(t.Context(), 0, 0); !errors.Is(err, delayq.ErrInvalid) {
		t.Errorf("Trim without bounds returns %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := q.Dead().Trim(ctx, time.Hour, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("Trim in an ended context returns %v", err)
	}
}

// A queue whose backend was closed first has nothing to trim, and says nothing.
func TestRetentionAfterTheBackendIsClosed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log journal
		s := newSeam()
		q := newQueue(t, s.option(), log.Logger(), delayq.DeadLetterRetention(0, 3))
		die(t, q, 0, 1)
		must(t, s.Close())
		time.Sleep(time.Hour)
		if calls, _ := s.calls("trim"); calls != 1 || log.String() != "" {
			t.Errorf("%d looks in an hour, and the log is %q; want one look and no line", calls, log.String())
		}
	})
}

// A store that fails is asked again.
func TestRetentionWhileTheStoreFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log journal
		s := newSeam()
		s.before = once("trim")
		q := newQueue(t, s.option(), log.Logger(), delayq.DeadLetterRetention(0, 3))
		die(t, q, 0, 5)
		time.Sleep(time.Minute)
		log.Want(t, "level=WARN", "beyond the retention failed")
		if n := len(deadIDs(t, q)); n != 5 {
			t.Errorf("%d letters of 5 are left, and the store has failed", n)
		}
		time.Sleep(12 * time.Minute)
		if n := len(deadIDs(t, q)); n != 3 {
			t.Errorf("%d letters are left, want 3", n)
		}
	})
}

// Letters that are made while a slow look ends do not wait for the next one.
func TestManyDeathsDuringALook(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSeam()
		s.slowReply("trim", time.Minute)
		q := newQueue(t, s.option(), delayq.DeadLetterRetention(0, 3))
		die(t, q, 0, 1)
		time.Sleep(20 * time.Second) // the look has begun
		die(t, q, 1, 20)
		time.Sleep(2 * time.Minute)
		if n := len(deadIDs(t, q)); n != 3 {
			t.Errorf("%d letters are left, want 3", n)
		}
	})
}

// The dead letters of expired messages count among the new ones.
func TestManyExpiredMessagesDie(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWatcher()
		q := newQueue(t, w.metrics(), delayq.DeadLetterRetention(0, 3))
		die(t, q, 0, 1)
		time.Sleep(time.Minute) // the first look is over
		pushMany(t, q, 20, delayq.ExpiresAfter(time.Second), delayq.DeadLetterExpired())
		time.Sleep(2 * time.Second)
		takeNone(t, q)
		time.Sleep(time.Second)
		if n := len(deadIDs(t, q)); n != 3 {
			t.Errorf("%d letters are left, want 3", n)
		}
		w.wantTotal(t, 18, "delayq.dead_letters.deleted")
	})
}

func TestNoRetentionWithoutRedriving(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSeam()
		s.traits = lackingOnly(delayq.Redriving)
		newQueue(t, s.option(), delayq.DeadLetterRetention(0, 3))
		time.Sleep(time.Hour)
		if calls, _ := s.calls("trim"); calls != 0 {
			t.Errorf("a store that keeps no dead letters was asked %d times to delete some", calls)
		}
	})
}

// A store that outlives the process may have too many letters at the start.
func TestRetentionOfADurableStore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSeam()
		s.traits = lackingOnly()
		q, other := newPair(t, s, delayq.DeadLetterRetention(0, 3))
		die(t, other, 0, 9)
		time.Sleep(12 * time.Second)
		if n := len(deadIDs(t, q)); n != 3 {
			t.Errorf("%d letters are left after a start, want 3", n)
		}
	})
}
