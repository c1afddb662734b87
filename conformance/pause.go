package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/judge"
)

// Invariants 10 and 12, for PauseAll.
var pauseChecks = []Check{
	{
		Name: "pause", Invariant: 10, needs: []backend.Feature{backend.Pausing},
		Rule: "While a queue is paused no client gets a message, whether it was due before, becomes due, is given back or loses its lease; pushes, cancels and acks go on, and Stats shows the pause.",
		run:  pause,
	},
	{
		Name: "pause-stays", Invariant: 10, needs: []backend.Feature{backend.Pausing},
		Rule: "A pause outlasts all handles, the last message and a purge; a further PauseAll replaces its end, and an end that has passed ends it. Stats shows the latest end that the limits allow; a PauseAll or ResumeAll that fails changes nothing.",
		run:  pauseStays,
	},
	{
		Name: "pause-race", Invariant: 10, needs: []backend.Feature{backend.Pausing},
		Rule: "A Receive that begins after PauseAll has returned gets no message before ResumeAll is called, however busy the workers are; no message is lost.",
		run:  pauseRace,
	},
	{
		Name: "pause-ends", Invariant: 12, needs: []backend.Feature{backend.Pausing},
		Rule: "When a pause ends, by ResumeAll, by a PauseAll whose end has passed or by the store's clock, waiting workers of every client get what is due, in time and not before.",
		run:  pauseEnds,
	},
}

func pause(t *testRun) {
	other := t.second()
	returned, done := t.takeNew(t.lease()), t.takeNew(t.lease())
	lapses := t.takeNew(t.Tick) // last: nothing is taken after it before the pause
	t.pushAfter(0)
	t.pauseAll(t.q, backend.Pause{})
	t.isPaused(true)
	t.holdsBack(t.q, other)
	t.pushAfter(0)
	t.pushAfter(t.Tick)
	t.nack(returned, 0)
	if t.has(backend.Cancelling) {
		t.must(t.cancelID(t.pushAfter(t.Tick)), "Cancel in a pause")
	}
	_, err := t.extend(done, t.lease())
	t.must(err, "Extend in a pause")
	t.expectAgain(lapses.ID, time.Time{})
	t.pass(t.Tick + t.lag())
	t.holdsBack(t.q, other)
	t.ack(done)
	t.isPaused(true)
	t.resumeAll(other)
	t.isPaused(false)
	t.ack(t.takeAll(5, 2)...)
	t.nothing("all are done")
	t.empty()
}

// takeNew pushes a message and takes it.
func (t *testRun) takeNew(lease time.Duration) backend.Delivery {
	return t.takeIDFor(t.pushAfter(0), lease)
}

func (t *testRun) pauseAll(q backend.Queue, p backend.Pause) {
	t.must(q.PauseAll(t.ctx, p), "PauseAll")
}

func (t *testRun) resumeAll(q backend.Queue) { t.must(q.ResumeAll(t.ctx), "ResumeAll") }

// isPaused compares the pause that Stats shows with one without an end, or none.
func (t *testRun) isPaused(paused bool) {
	if !t.has(backend.Counting) {
		return
	}
	if s := t.stats(); s.Paused != paused || !s.PausedUntil.IsZero() {
		t.fail("Stats shows a pause: %t, until %v; want %t, without an end", s.Paused, s.PausedUntil, paused)
	}
}

// pauseFor pauses the queue for that long. Stats has to show the end: to the resolution on the fake
// clock, else to the difference of the clocks and the time that the call took. Where the calls took
// as long as the pause, it may be over.
func (t *testRun) pauseFor(d time.Duration) (end time.Time) {
	asked := t.now()
	t.pauseAll(t.q, backend.Pause{For: d})
	end = asked.Add(d)
	if !t.has(backend.Counting) {
		return end
	}
	first, last := end.Add(-t.Skew), t.now().Add(d+t.traits.Resolution+t.Skew)
	s := t.stats()
	if !s.Paused && !t.now().Before(first) {
		return end
	}
	if !s.Paused || s.PausedUntil.Before(first) || s.PausedUntil.After(last) {
		t.fail("Stats shows a pause: %t, until %v; want true, %v to %v", s.Paused, s.PausedUntil, first, last)
	}
	return end
}

// holdsBack fails when a client gets a message.
func (t *testRun) holdsBack(clients ...backend.Queue) {
	for _, q := range clients {
		ctx, cancel := context.WithTimeout(t.ctx, t.Quiet)
		ds, err := q.Receive(ctx, 1, t.lease())
		cancel()
		if len(ds) > 0 {
			t.fail("message %s was handed out at attempt %d, though the queue is paused", ds[0].ID, ds[0].Attempt)
		}
		t.want(err, context.DeadlineExceeded, "receiving while the queue is paused")
	}
}

func pauseStays(t *testRun) {
	last := t.takeNew(t.lease())
	other := t.second()
	t.pauseAll(other, backend.Pause{})
	t.must(other.Close(), "Close")
	t.failToPause(other)
	t.ack(last)
	id := t.pushAfter(0)
	t.holdsBack(t.q)
	if t.has(backend.Purging) {
		t.purges([]string{id})
		id = t.pushAfter(0)
		t.holdsBack(t.q)
	}
	t.pauseFor(1000 * t.Tick)
	s := t.sleep(t.q)
	end := t.pauseFor(t.Tick)
	t.expectAgain(id, end.Add(-t.Skew))
	t.settleDown()
	t.pass(t.Tick)
	t.grace()
	t.ack(s.woken(id, "a shorter pause had replaced the first"))
	t.isPaused(false)
	t.pauseAll(t.q, backend.Pause{})
	t.pauseAll(t.q, backend.Pause{Until: t.now().Add(-time.Hour)})
	t.isPaused(false)
	t.ack(t.takeNew(t.lease()))
	t.resumeAll(t.q)
	t.failToPause(other)
	t.outlastsHandles()
	t.empty()
}

// failToPause pauses and resumes the queue through a closed handle, and under a context that has
// ended. Neither changes whether it is paused.
func (t *testRun) failToPause(closed backend.Queue) {
	paused := t.has(backend.Counting) && t.stats().Paused
	fail := func(ctx context.Context, q backend.Queue, want error, how string) {
		t.want(q.PauseAll(ctx, backend.Pause{}), want, "PauseAll %s", how)
		t.isPaused(paused)
		t.want(q.ResumeAll(ctx), want, "ResumeAll %s", how)
		t.isPaused(paused)
	}
	ended, cancel := context.WithCancel(t.ctx)
	cancel()
	fail(ended, t.q, context.Canceled, "under a context that had ended")
	fail(t.ctx, closed, backend.ErrClosed, "on a closed handle")
}

// outlastsHandles closes the only handle while the queue is empty and paused, and opens another.
func (t *testRun) outlastsHandles() {
	t.pauseAll(t.q, backend.Pause{Until: backend.LatestDue})
	if t.has(backend.Counting) {
		s := t.stats()
		if over := s.PausedUntil.Sub(backend.LatestDue); !s.Paused || over < 0 || over > t.traits.Resolution {
			t.fail("Stats shows a pause: %t, until %v; want true, %v", s.Paused, s.PausedUntil, backend.LatestDue)
		}
	}
	t.pauseAll(t.q, backend.Pause{})
	t.must(t.q.Close(), "closing the last handle")
	q, err := t.openOn(t.b, t.name())
	t.must(err, "opening the queue again")
	t.q = q
	t.isPaused(true)
	id := t.pushAfter(0)
	t.holdsBack(t.q)
	t.resumeAll(t.q)
	t.grace()
	t.ack(t.takeID(id))
}

// pauseRace pauses the queue again and again while workers give messages back as fast as they get
// them.
func pauseRace(t *testRun) {
	const workers, messages = 4, 20
	clients := []backend.Queue{t.q, t.second()}
	for range messages {
		t.pushAfter(0)
	}
	var pause, acked atomic.Int64 // the number of the pause that is in force, or 0
	var draining atomic.Bool
	ctx, stop := context.WithCancel(t.ctx)
	defer stop()
	work := func(i int) error {
		q := clients[i%len(clients)]
		for {
			during := pause.Load()
			ds, err := q.Receive(ctx, 2, t.lease())
			if err != nil {
				return unless(errors.Is(err, context.Canceled), err)
			}
			if during != 0 && during == pause.Load() {
				return fmt.Errorf("message %s was handed out to a Receive that began after PauseAll had returned", ds[0].ID)
			}
			for _, d := range ds {
				if draining.Load() {
					err = outcome(q.Ack(t.ctx, []backend.Lease{d.Lease()}))
					acked.Add(1)
				} else {
					err = outcome(q.Nack(t.ctx, []backend.Return{{Lease: d.Lease()}}))
				}
				if err != nil {
					return fmt.Errorf("settling message %s: %w", d.ID, err)
				}
			}
		}
	}
	pauses := func() error {
		defer stop()
		for n := range int64(t.scaled(8, 50)) {
			if err := clients[n%2].PauseAll(t.ctx, backend.Pause{}); err != nil {
				return err
			}
			pause.Store(n + 1)
			t.moment()
			pause.Store(0)
			if err := clients[n/2%2].ResumeAll(t.ctx); err != nil {
				return err
			}
			t.moment()
		}
		draining.Store(true)
		for deadline := time.Now().Add(t.Patience); acked.Load() < messages; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				return fmt.Errorf("%d of %d messages came after the last pause", acked.Load(), messages)
			}
		}
		return nil
	}
	t.all(append(spread(workers, work), pauses)...)
	t.empty()
}

func unless(fine bool, err error) error {
	if fine {
		return nil
	}
	return err
}

func pauseEnds(t *testRun) {
	other := t.second()
	for _, how := range []string{"by ResumeAll", "by one that has passed", "after a time", "at a time"} {
		var p backend.Pause
		switch how {
		case "after a time":
			p.For = 2 * t.Tick
		case "at a time":
			p.Until = t.now().Add(2 * t.Tick)
		}
		first, second := t.pushAfter(t.Tick), t.pushAfter(t.Tick/2)
		asked := t.now()
		t.pauseAll(t.q, p)
		earliest, end := p.EndAt(asked), p.EndAt(t.now()) // the store looks at its clock between the two
		if end.IsZero() {
			end = t.now().Add(2 * t.Tick)
			earliest = end
		}
		for _, id := range []string{first, second} {
			t.expectAgain(id, earliest.Add(-t.Skew))
		}
		a, b := t.sleep(t.q), t.sleep(other)
		t.pass(max(0, end.Sub(t.now())-1))
		t.moment()
		switch how {
		case "by ResumeAll":
			t.pass(1)
			t.resumeAll(t.q)
		case "by one that has passed":
			t.pass(1)
			t.pauseAll(other, backend.Pause{Until: t.now().Add(-time.Hour)})
		default:
			t.pass(max(0, end.Sub(t.now())))
		}
		t.grace()
		for _, s := range []*sleeper{a, b} {
			t.ack(s.wokenBy("the pause had ended " + how))
			if early := -judge.Late(earliest, s.at); early > t.Skew {
				t.fail("a message was handed out %v before the end of the pause", early)
			}
			if late := s.at.Sub(end); late > t.late() {
				t.fail("a message was handed out %v after the end of the pause; allowed is %v", late, t.late())
			}
		}
		t.isPaused(false)
	}
	t.empty()
}
