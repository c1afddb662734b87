package store

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
	"github.com/delayq/delayq/internal/redis/script"
)

func replaces(m backend.Message) bool { return m.Replace }

// inRuns passes runs of messages with Replace and without to their scripts, in order.
func (s *Store) inRuns(ctx context.Context, ms []backend.Message) (errs []error) {
	for start, end := 0, 0; start < len(ms); start = end {
		for end < len(ms) && ms[end].Replace == ms[start].Replace && ms[end].AfterInFlight == ms[start].AfterInFlight {
			end++
		}
		store := s.push
		if ms[start].Replace {
			store = s.replace
		}
		if part := store(ctx, ms[start:end]); part != nil {
			if errs == nil {
				errs = make([]error, len(ms))
			}
			copy(errs[start:], part)
		}
	}
	return errs
}

// A replacement is a message, with the known facts of the message that waits under its id.
type replacement struct {
	*backend.Message
	seq   string    // of the message that it may replace; "" for none
	first time.Time // the first push; zero for now
	anew  bool      // the message is in flight, and was not replaced yet
	fresh bool      // this is the first push: one before it in the batch has no MaxWait
	err   error
}

// replace looks which messages wait. Then it stores its own, each only in place of the message that
// it has seen. So a call that is repeated after a lost reply, or executed late, undoes no newer
// push. Where another push came in between, it looks and tries again.
func (s *Store) replace(ctx context.Context, ms []backend.Message) []error {
	last := make(map[string]*replacement, len(ms))
	var todo []*replacement
	for i := range slices.Backward(ms) {
		if last[ms[i].ID] == nil {
			last[ms[i].ID] = &replacement{Message: &ms[i]}
			todo = append(todo, last[ms[i].ID])
		} else if ms[i].MaxWait == 0 {
			last[ms[i].ID].fresh = true
		}
	}
	slices.Reverse(todo)
	for look := true; len(todo) > 0; look = false {
		todo = s.replaceSome(ctx, todo, look)
	}
	return backend.Each(len(ms), func(i int) error { return last[ms[i].ID].err })
}

// replaceSome returns the messages to try again.
func (s *Store) replaceSome(ctx context.Context, rs []*replacement, look bool) (again []*replacement) {
	size := func(r *replacement) int { return len(r.Body) }
	script.Chunked(rs, size, func(part []*replacement) []error {
		args := make([]any, 0, 1+7*len(part))
		how := 0
		if look {
			how = 1
		}
		if part[0].AfterInFlight {
			how += 2
		}
		args = append(args, how)
		for _, r := range part {
			args = r.arguments(args)
		}
		reply, err := s.pushes.Run(ctx, replaceScript, args...)
		confirmed := error(nil)
		if errors.Is(err, backend.ErrUnconfirmed) {
			confirmed, err = err, nil
		}
		errs := script.Outcomes(replaceScript, len(part), s.pushes.Heard(reply), err, func(i int, reply any) error {
			if part[i].met(reply) {
				again = append(again, part[i])
				return nil
			}
			return replaced(reply, confirmed)
		})
		for i, r := range part {
			if errs != nil {
				r.err = errs[i]
			}
		}
		return nil
	})
	return again
}

// arguments appends those of the script.
func (r *replacement) arguments(args []any) []any {
	var content []byte
	var wait, first string
	at := 0
	switch {
	case r.MaxWait == 0:
		content = record.AppendContent(nil, r.Headers, r.Body)
	case r.first.IsZero():
		wait = strconv.FormatInt(script.Delay(r.MaxWait), 10)
		content, at = record.AppendContentWith(nil, r.Headers, backend.FirstPushHeader, strings.Repeat("0", backend.FirstPushSize), r.Body)
	default:
		wait = strconv.FormatInt(script.Delay(r.MaxWait), 10)
		first = strconv.FormatInt(r.first.UnixMicro(), 10)
		content = record.AppendContent(nil, backend.WithFirstPush(r.Headers, r.first), r.Body)
	}
	if r.anew {
		first = "-"
	}
	return append(args, packed(r.ID), content, appendWhen(nil, r.Message), r.seq, wait, first, at)
}

// met reads the reply for a message whose place was taken by another push.
func (r *replacement) met(reply any) bool {
	values, ok := reply.([]any)
	if !ok || len(values) != 2 {
		return false
	}
	r.seq, _ = values[0].(string)
	text, _ := values[1].(string)
	headers, _, _ := record.Content([]byte(text))
	r.first, r.anew = backend.FirstPush(headers), text == "-"
	if r.fresh {
		r.first = time.Time{}
	}
	return true
}

// replaced returns the error of a push with Replace, and confirmed for one that was stored.
func replaced(reply any, confirmed error) error {
	switch values, _ := reply.([]any); {
	case len(values) == 1:
		text, _ := values[0].(string)
		return replaceScript.Failed(text)
	case reply == int64(1):
		return confirmed
	case reply == int64(3):
		return backend.ErrInFlight
	default:
		return stored(reply)
	}
}
