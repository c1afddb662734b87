package schedule

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/background"
	"github.com/delayq/delayq/internal/valid"
)

const (
	// clocksApart is how far the clocks of processes that repeat the same may differ.
	clocksApart = time.Hour

	// catchUp is how long after its time an occurrence is still pushed.
	catchUp = time.Minute

	// No timer notices that the wall clock was set, so waits are cut: into minutes, or thousandths
	// of the wait where these are longer.
	minNap   = time.Minute
	napShare = 1000

	maxName = 200
)

// backoff spaces the tries of a push whose store fails.
var backoff = delayq.Exponential(50*time.Millisecond, 5*time.Second)

// Repeat pushes a message with this body at each occurrence of the schedule, until ctx ends or q is
// closed; then it returns nil. However many processes run it with one name, each occurrence is one
// message.
//
// As soon as an occurrence is due, Repeat pushes the next one, as a message due then. Its id is
// made of the name and the time, such as "report@2026-05-01T12:00:00Z", and stays taken for an hour
// and a minute beyond that time, as with [delayq.UniqueFor]: the clocks of the processes may differ
// by up to an hour. So the next occurrence also comes when all of these processes end meanwhile.
// Those after it do not, and no later Repeat makes up for them. The next occurrence also comes when
// the schedule has changed since; Cancel deletes it by its id. An occurrence farther ahead than 399
// days, or than the backend's longest delay, is pushed when no more than that is left.
//
// When the clock is set back, Repeat goes on from the new time: no occurrence is left out. One that
// has come already, more than an hour and a minute ahead of its time by the new clock, comes again.
//
// Failures of the store do not stop it: it logs them and tries again, less and less often. It logs
// and leaves out an occurrence that it could not push until a minute after its time.
//
// q is a queue that [delayq.New] or [delayq.Open] returned; Repeat returns [delayq.ErrInvalid] for
// a fake or a wrapper. The name is 1 to 200 bytes of UTF-8 without control characters. The only
// option is [delayq.Header]. Repeat returns [delayq.ErrUnsupported] where the backend lacks
// [delayq.OwnIDs] or [delayq.UniqueWindows]. When the schedule has no further occurrence, it logs
// that and returns nil early. A schedule that panics is an error. Errors are of type
// [*delayq.OpError].
func Repeat(ctx context.Context, q delayq.Queue, name string, s Schedule, body []byte, opts ...delayq.PushOption) error {
	host, ok := background.HostOf(q)
	if !ok {
		return opError("repeat", "", name, backend.Invalid("queue", reflect.TypeOf(q), "one that New or Open returned"))
	}
	r, err := newRepetition(ctx, q, host, name, s, body, opts)
	if err == nil {
		err = host.Run(ctx, r.run)
	}
	return opError("repeat", host.Name, name, err)
}

// A repetition is one running Repeat.
type repetition struct {
	queue    delayq.Queue
	host     background.Host
	name     string
	schedule Schedule
	message  delayq.Message // of each occurrence, without its time
	horizon  time.Duration  // how far ahead an occurrence may be pushed
}

func newRepetition(
	ctx context.Context, q delayq.Queue, host background.Host, name string, s Schedule, body []byte, opts []delayq.PushOption,
) (*repetition, error) {
	if err := valid.Context(ctx); err != nil {
		return nil, err
	}
	for _, f := range []delayq.Feature{delayq.OwnIDs, delayq.UniqueWindows} {
		if err := valid.Feature(f, f.String(), host.Traits); err != nil {
			return nil, err
		}
	}
	if name == "" || len(name) > maxName || !utf8.ValidString(name) || strings.IndexFunc(name, unicode.IsControl) >= 0 {
		return nil, backend.Invalid("name", name, "1 to 200 bytes of UTF-8 without control characters")
	}
	if err := validSchedule(s); err != nil {
		return nil, err
	}
	r := &repetition{queue: q, host: host, name: name, schedule: s, horizon: backend.MaxUnique - clocksApart - catchUp}
	if limit := host.Traits.MaxDelay; limit > 0 {
		r.horizon = min(r.horizon, limit)
	}
	r.message.Body = bytes.Clone(body)
	if err := r.apply(opts); err != nil {
		return nil, err
	}
	sample := r.at(backend.EarliestDue, backend.EarliestDue)
	return r, valid.Message(&sample, host.Traits)
}

// apply sets the headers of the messages. Name and schedule decide the rest, so no option may set it.
func (r *repetition) apply(opts []delayq.PushOption) error {
	m := &r.message
	for _, set := range opts {
		if set == nil {
			return backend.Invalid("push option", valid.Described("nil"), "the result of Header")
		}
		if err := set(m); err != nil {
			return err
		}
	}
	rest := *m
	rest.Body, rest.Headers = nil, nil
	if reflect.ValueOf(rest).IsZero() {
		return nil
	}
	return backend.Invalid("push option", valid.Described("ID, UniqueFor, At, After, Spread, Replace or a limit"), "Header: the rest comes from name and schedule")
}

// run pushes occurrence after occurrence until ctx ends.
func (r *repetition) run(ctx context.Context) error {
	last := r.now()
	for ctx.Err() == nil {
		began := r.now()
		next, err := r.after(last)
		if err != nil {
			return err
		}
		if next.IsZero() {
			r.host.Log.Warn("delayq: the schedule has no further occurrence; the repetition ends", "repeat", r.name, "last", last)
			return nil
		}
		if r.sleep(ctx, began, next.Add(-r.horizon)) {
			err = r.push(ctx, began, next)
		}
		switch {
		case errors.Is(err, delayq.ErrClosed):
			return nil
		case err != nil:
			return err
		}
		if r.sleep(ctx, began, next) {
			last = next
		}
		last = earlier(last, r.now())
	}
	return nil
}

// now returns the wall clock's time: the schedule goes by that, also after it was set.
func (r *repetition) now() time.Time { return r.host.Clock.Now().Round(0) }

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// after returns the first occurrence after last whose time to be pushed has not passed; zero when
// there is none.
func (r *repetition) after(last time.Time) (time.Time, error) {
	next, err := nextAfter(r.schedule, last)
	earliest := r.now().Add(-catchUp)
	if err == nil && !next.IsZero() && !next.After(earliest) {
		r.host.Log.Warn("delayq: occurrences are left out: their time has passed", "repeat", r.name, "from", next, "until", earliest)
		next, err = nextAfter(r.schedule, earliest)
	}
	if err != nil || next.IsZero() {
		return next, err
	}
	m := r.at(next, next)
	return next, valid.Message(&m, r.host.Traits)
}

// push pushes an occurrence, unless it is there, and tries again until its time has passed, or the
// clock was set back before began.
func (r *repetition) push(ctx context.Context, began, due time.Time) error {
	for failures := 1; ; failures++ {
		_, err := r.queue.Push(ctx, nil, func(m *delayq.Message) error {
			*m = r.at(due, r.host.Clock.Now())
			return nil
		})
		switch {
		case err == nil, errors.Is(err, delayq.ErrDuplicate), ctx.Err() != nil:
			return nil //nolint:nilerr // another process has pushed it, or ctx has ended
		case errors.Is(err, delayq.ErrInvalid), errors.Is(err, delayq.ErrUnsupported), errors.Is(err, delayq.ErrClosed):
			return err
		}
		retry := r.host.Clock.Now().Add(backoff.Delay(failures, err))
		if retry.Sub(due) >= catchUp {
			r.host.Log.Error("delayq: an occurrence is left out: it could not be pushed in time", "repeat", r.name, "due", due, "err", err)
			return nil
		}
		r.host.Log.Warn("delayq: pushing an occurrence failed; trying again", "repeat", r.name, "due", due, "err", err, "failures", failures)
		if !r.sleep(ctx, began, retry) {
			return nil
		}
	}
}

// at returns the message of an occurrence that is pushed now. By a clock that is ahead, its time is
// near. The id stays taken until no process pushes it any more, by the clock that is behind.
func (r *repetition) at(due, now time.Time) delayq.Message {
	m := r.message
	m.ID = r.name + "@" + due.UTC().Format(time.RFC3339Nano)
	m.Due = due
	m.UniqueFor = min(max(0, due.Sub(now))+clocksApart+catchUp, backend.MaxUnique)
	return m
}

// sleep waits until a time of the queue's clock. It returns false when ctx ends first, or when the
// clock was set back, to before began: until may be too late then.
func (r *repetition) sleep(ctx context.Context, began, until time.Time) bool {
	for ctx.Err() == nil {
		now := r.now()
		if back := began.Sub(now); back > 0 {
			r.host.Log.Info("delayq: the clock was set back", "repeat", r.name, "by", back)
			return false
		}
		if !now.Before(until) {
			return true
		}
		left := until.Sub(now)
		backend.SleepUntil(r.host.Clock, now.Add(min(left, max(minNap, left/napShare))), ctx.Done())
	}
	return false
}
