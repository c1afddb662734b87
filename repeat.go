package delayq

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/delayq/delayq/backend"
)

const (
	// clocksApart is how far the clocks of processes that repeat the same may differ.
	clocksApart = time.Hour

	// catchUp is how long after its time an occurrence is still pushed.
	catchUp = time.Minute

	// A jump of the wall clock, which no timer hears of, is noticed within a nap: a minute, or a thousandth of the wait
	// where that is more.
	minNap   = time.Minute
	napShare = 1000

	maxRepeatName = 200
)

func (q *queue) Repeat(ctx context.Context, name string, s Schedule, body []byte, opts ...PushOption) error {
	r, err := q.newRepetition(ctx, name, s, body, opts)
	if err != nil {
		return q.fail("repeat", name, err)
	}
	if !q.join() {
		return q.fail("repeat", name, ErrClosed)
	}
	defer q.consumers.Done()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(q.stopping, stop)()
	return q.fail("repeat", name, r.run(ctx))
}

// A repetition is one running Repeat.
type repetition struct {
	*queue
	name     string
	schedule Schedule
	message  Message       // of each occurrence, but for what the time makes
	horizon  time.Duration // how far ahead an occurrence may be pushed
}

func (q *queue) newRepetition(ctx context.Context, name string, s Schedule, body []byte, opts []PushOption) (*repetition, error) {
	r := &repetition{queue: q, name: name, schedule: s, message: Message{Body: bytes.Clone(body)}}
	r.horizon = min(backend.MaxUnique-clocksApart-catchUp, maxDelay(q.traits))
	err := firstError(validContext(ctx), q.require([]Feature{OwnIDs, UniqueWindows}), validRepeatName(name), validSchedule(s))
	if err == nil {
		err = apply(&r.message, opts)
	}
	if err == nil {
		err = validRepeated(&r.message)
	}
	if err != nil {
		return nil, err
	}
	sample := r.at(backend.EarliestDue, backend.EarliestDue)
	return r, q.validMessage(&sample)
}

func validRepeatName(name string) error {
	if name == "" || len(name) > maxRepeatName || !printable(name) {
		return backend.Invalid("name", name, "1 to 200 bytes of UTF-8 without control characters")
	}
	return nil
}

// validRepeated leaves to the schedule what the schedule decides.
func validRepeated(m *Message) error {
	if m.ID != "" || m.UniqueFor != 0 || !m.Due.IsZero() || m.Delay != 0 {
		return backend.Invalid("push option", described("ID, UniqueFor, At or After"), "Header: the rest comes from name and schedule")
	}
	return nil
}

// run pushes occurrence after occurrence until ctx ends.
func (r *repetition) run(ctx context.Context) error {
	last := r.clock.Now()
	for ctx.Err() == nil {
		next, err := r.after(last)
		if err != nil {
			return err
		}
		if next.IsZero() {
			r.log.Warn("delayq: the schedule has no further occurrence; the repetition ends", "repeat", r.name, "last", last)
			return nil
		}
		if r.sleep(ctx, next.Add(-r.horizon)) {
			err = r.push(ctx, next)
		}
		switch {
		case errors.Is(err, ErrClosed):
			return nil
		case err != nil:
			return err
		}
		r.sleep(ctx, next)
		last = next
	}
	return nil
}

// after returns the occurrence after that one which is still to be pushed, or zero.
func (r *repetition) after(last time.Time) (time.Time, error) {
	next, err := nextAfter(r.schedule, last)
	earliest := r.clock.Now().Add(-catchUp)
	if err != nil || next.IsZero() || next.After(earliest) {
		return next, err
	}
	r.log.Warn("delayq: occurrences are left out: their time has passed", "repeat", r.name, "from", next, "until", earliest)
	return nextAfter(r.schedule, earliest)
}

// push pushes an occurrence unless it is there, as often as it takes until its time has passed.
func (r *repetition) push(ctx context.Context, due time.Time) error {
	for failures := 1; ; failures++ {
		_, err := r.Push(ctx, nil, func(m *Message) error {
			*m = r.at(due, r.clock.Now())
			return nil
		})
		switch {
		case err == nil, errors.Is(err, ErrDuplicate), ctx.Err() != nil:
			return nil //nolint:nilerr // somebody else has pushed it, or the end of ctx is the end of the work
		case errors.Is(err, ErrInvalid), errors.Is(err, ErrUnsupported), errors.Is(err, ErrClosed):
			return err
		}
		retry := r.clock.Now().Add(refetch.Delay(failures, err))
		if retry.Sub(due) >= catchUp {
			r.log.Error("delayq: an occurrence is left out: it could not be pushed in time", "repeat", r.name, "due", due, "err", err)
			return nil
		}
		r.log.Warn("delayq: pushing an occurrence failed; trying again", "repeat", r.name, "due", due, "err", err, "failures", failures)
		r.sleep(ctx, retry)
	}
}

// at makes the message of an occurrence that is pushed now. By a clock that is ahead, its time is near: the id has to
// stay taken until by the clock that is behind, nobody pushes it any more.
func (r *repetition) at(due, now time.Time) Message {
	m := r.message
	m.ID = r.name + "@" + due.UTC().Format(time.RFC3339Nano)
	m.Due = due
	m.UniqueFor = max(0, due.Sub(now)) + clocksApart + catchUp
	return m
}

// sleep waits until then by the queue's clock; false when ctx ends first.
func (r *repetition) sleep(ctx context.Context, until time.Time) bool {
	for ctx.Err() == nil {
		now := r.clock.Now()
		if !now.Before(until) {
			return true
		}
		left := until.Sub(now)
		r.nap(ctx, now, min(left, max(minNap, left/napShare)))
	}
	return false
}

func (r *repetition) nap(ctx context.Context, now time.Time, d time.Duration) {
	t := r.clock.NewTimer(d)
	defer t.Stop()
	if r.clock.Since(now) >= min(d, time.Millisecond) {
		return // the clock has jumped before the timer ran
	}
	select {
	case <-t.Chan():
	case <-ctx.Done():
	}
}
