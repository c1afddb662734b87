package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/delayq/delayq"
)

// listOf has the actions on messages that exist, with the list that they work on.
var listOf = map[Action]string{Cancel: waiting, Reschedule: waiting, Redrive: dead, Delete: dead}

// change is an action on messages.
type change struct {
	action Action
	delay  time.Duration // of Reschedule
	due    time.Time     // of Reschedule; zero for the delay
}

// readChange reads what a form asks for. The value "now" is a reschedule to now.
func readChange(form url.Values) (c change, err error) {
	value := form.Get("action")
	if c.action = Action(value); value == "now" {
		c.action = Reschedule
	}
	if listOf[c.action] == "" {
		return c, errors.New("action: cancel, reschedule, now, redrive or delete")
	}
	timed := strings.TrimSpace(form.Get("after")+form.Get("at")) != ""
	switch {
	case value != string(Reschedule) && timed:
		err = fmt.Errorf("%s takes no delay and no time: leave them empty, or reschedule", c)
	case value == string(Reschedule) && !timed:
		err = errors.New("reschedule: a delay or a time")
	case timed:
		c.delay, c.due, err = readDue(form)
	}
	return c, err
}

// readDue reads the delay or the time of a form; both are empty for now.
func readDue(form url.Values) (delay time.Duration, due time.Time, err error) {
	after, at := strings.TrimSpace(form.Get("after")), strings.TrimSpace(form.Get("at"))
	switch {
	case after != "" && at != "":
		err = errors.New("a delay or a time, not both")
	case after != "":
		if delay, err = parseSpan(after); err != nil {
			err = fmt.Errorf("delay: %w", err)
		}
	case at != "":
		due, err = parseTime(at)
	}
	return delay, due, err
}

func parseTime(s string) (time.Time, error) {
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, errors.New("time: UTC, as 2030-01-31T18:00")
}

// String says what the change does.
func (c change) String() string {
	switch {
	case c.action == Delete:
		return "delete"
	case c.action != Reschedule:
		return string(c.action)
	case !c.due.IsZero():
		return "reschedule to " + clock(c.due)
	case c.delay > 0:
		return "reschedule to " + span(c.delay) + " from now"
	default:
		return "run now"
	}
}

// result counts what became of messages.
type result struct {
	Done, Gone, InFlight, Failed int
	First                        string // failure
}

func (r *result) add(o result) {
	r.Done, r.Gone, r.InFlight, r.Failed = r.Done+o.Done, r.Gone+o.Gone, r.InFlight+o.InFlight, r.Failed+o.Failed
	if r.First == "" {
		r.First = o.First
	}
}

// String is a sentence.
func (r result) String() string {
	text := fmt.Sprintf("%s done", count(int64(r.Done)))
	if r.Gone > 0 {
		text += fmt.Sprintf(", %s not there any more", count(int64(r.Gone)))
	}
	if r.InFlight > 0 {
		text += fmt.Sprintf(", %s in flight", count(int64(r.InFlight)))
	}
	if r.Failed > 0 {
		text += fmt.Sprintf(", %s failed (%s)", count(int64(r.Failed)), r.First)
	}
	return text
}

// apply makes the change on the messages of these ids.
func (c change) apply(ctx context.Context, q delayq.Queue, ids []string) (result, error) {
	var err error
	switch c.action {
	case Cancel:
		err = q.CancelBatch(ctx, ids)
	case Reschedule:
		moves := make([]delayq.Move, len(ids))
		for i, id := range ids {
			moves[i] = delayq.Move{ID: id, Due: c.due, Delay: c.delay}
		}
		err = q.RescheduleBatch(ctx, moves)
	case Redrive:
		err = q.Dead().Redrive(ctx, ids...)
	case Delete:
		err = q.Dead().Delete(ctx, ids...)
	default:
		err = fmt.Errorf("no action on messages: %q", c.action)
	}
	return outcome(len(ids), err), err
}

func outcome(n int, err error) (r result) {
	var batch *delayq.BatchError
	if !errors.As(err, &batch) {
		if err != nil {
			return result{Failed: n, First: short(err.Error(), 300)}
		}
		return result{Done: n}
	}
	for _, err := range batch.Errs {
		switch {
		case err == nil:
			r.Done++
		case errors.Is(err, delayq.ErrNotFound):
			r.Gone++
		case errors.Is(err, delayq.ErrInFlight):
			r.InFlight++
		default:
			r.add(result{Failed: 1, First: short(err.Error(), 300)})
		}
	}
	return r
}
