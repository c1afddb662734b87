package delayq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/ids"
	"github.com/delayq/delayq/internal/limits"
	"github.com/delayq/delayq/internal/valid"
)

// Message is one message of a [Pusher.PushBatch]. Its zero value is a message without content, due
// at once.
type Message = backend.Message

// PushOption sets a part of a message in Push.
type PushOption func(*Message) error

// After makes the message due that long from now by the store's clock, so that a wrong
// clock in this process does no harm: 0 to a hundred years.
func After(d time.Duration) PushOption {
	return func(m *Message) error {
		m.Delay = d
		return nil
	}
}

// At makes the message due at t, from 1970 to 2200, by the store's clock. A time in the past
// is due at once.
func At(t time.Time) PushOption {
	return func(m *Message) error {
		m.Due = t
		return valid.Due(t)
	}
}

// Spread makes the message due at a random time up to d later than [After] or [At] says, so that
// many messages for one time do not arrive in one second: 0 to a hundred years. The latest due time
// has to be within the limits of After and At. [WithRandom] sets the source.
func Spread(d time.Duration) PushOption {
	return func(m *Message) error {
		m.Spread = d
		return valid.Spread(d)
	}
}

// ID gives the message an id, as [Message] describes, under which a push can be retried. It needs
// [OwnIDs].
func ID(id string) PushOption {
	return func(m *Message) error {
		m.ID = id
		return valid.ID(id)
	}
}

// UniqueFor keeps the id that [ID] gives taken for that long after the push, by the store's clock,
// whatever becomes of the message: 1 ms to 400 days, 0 for off. A second push of the id within that
// time returns [ErrDuplicate]. Push returns [ErrInvalid] without an ID. It needs [UniqueWindows].
func UniqueFor(d time.Duration) PushOption {
	return func(m *Message) error {
		m.UniqueFor = d
		return valid.Window(d)
	}
}

// Replace has the push take the place of a message of the id that waits: its body, headers, limits
// and due time become the new ones in one step, and its attempts count anew. Use it to debounce:
// many pushes of one id within their delay end in one delivery, of the last. Without such a message
// it is an ordinary push.
//
// Push returns [ErrInFlight] while a worker holds the message of that id (see
// [ReplaceAfterInFlight]), and [ErrDuplicate] when it is a dead letter, or done while UniqueFor
// keeps the id. Nothing is stored then. Of concurrent pushes of one id the last one to reach the
// store stays. A push that returned [ErrOutcomeUnknown] is not repeated by the library where that
// could undo a newer one; repeated by you it is a new push.
//
// Push returns [ErrInvalid] without an [ID] or with [UniqueFor], and [ErrUnsupported] where the
// backend lacks [Replacing].
func Replace() PushOption {
	return func(m *Message) error {
		m.Replace = true
		return nil
	}
}

// ReplaceAfterInFlight is [Replace] that also replaces a message that a worker holds, instead of
// returning [ErrInFlight]. The worker goes on with what it was given. When it settles that, in
// whatever way, or its lease ends, the new message is scheduled: with its own due time, its own
// headers and limits, and attempts counted anew. Until then a further such push replaces it.
//
// So the newest content wins. What the worker held is not retried after a failure, and is no dead
// letter, though [OnDead] is still called. Until the worker settles, Get shows the new content in
// flight, and Cancel and Reschedule return ErrInFlight. [After] counts from the push. [MaxWait]
// counts from the first push that came while the worker held the message.
//
// Push returns the errors of Replace but for ErrInFlight, and [ErrUnsupported] where the backend
// lacks [ReplacingInFlight].
func ReplaceAfterInFlight() PushOption {
	return func(m *Message) error {
		m.Replace, m.AfterInFlight = true, true
		return nil
	}
}

// MaxWait bounds how far [Replace] moves the due time: it is never later than the first push plus
// d, rounded up to the store's resolution, so that a message that is replaced again and again is
// delivered all the same: 1 ms to a hundred years. The first push is the one that found no message
// of the id waiting, or one that was pushed without MaxWait. Its time is by the store's clock, and
// stays with the message while it waits, also after a retry: a message that was nacked and is
// replaced later than the first push plus d is due at once.
//
// Push returns [ErrInvalid] without Replace.
func MaxWait(d time.Duration) PushOption {
	return func(m *Message) error {
		m.MaxWait = d
		return valid.Wait(d)
	}
}

// Header adds a header, or replaces it. It needs [KeepingHeaders].
func Header(key, value string) PushOption {
	return func(m *Message) error {
		if m.Headers == nil {
			m.Headers = make(map[string]string)
		}
		m.Headers[key] = value
		return nil
	}
}

func (q *queue) Push(ctx context.Context, body []byte, opts ...PushOption) (string, error) {
	m := Message{Body: body}
	if err := valid.Apply(&m, opts, "push option", "the result of After, At, ID, Header or another option"); err != nil {
		return "", q.fail("push", m.ID, err)
	}
	made, err := q.prepare(ctx, &m)
	if err != nil {
		return "", q.fail("push", m.ID, err)
	}
	item := &[1]backend.Message{m}
	ctx, pushing := q.telemetry.StartPush(ctx, item[:])
	if m.Replace {
		err = cmp.Or(q.store.Schedule(ctx, item[:])...) // under this context alone: when Push returns, no later try follows
	} else if err = q.batch.Pushes.Do(ctx, item); err == nil {
		m.ID = item[0].ID // also where the store assigned it
	}
	err = pushed(err, made)
	pushing.End(ctx, item[:], err)
	return m.ID, q.fail("push", m.ID, err)
}

func (q *queue) PushBatch(ctx context.Context, ms []Message) ([]string, error) {
	if err := q.validBatch(ctx, len(ms)); err != nil || len(ms) == 0 {
		return nil, q.fail("push", "", err)
	}
	batch := make([]backend.Message, len(ms))
	made := make([]bool, len(ms))
	for i, m := range ms {
		var err error
		if made[i], err = q.prepare(ctx, &m); err != nil {
			return nil, q.fail("push", "", fmt.Errorf("message %d of the batch: %w", i, err))
		}
		batch[i] = m
	}
	ctx, pushing := q.telemetry.StartPush(ctx, batch)
	errs := q.store.Schedule(ctx, batch)
	ids := make([]string, len(ms))
	for i := range ids {
		if errs == nil || errs[i] == nil || q.Supports(OwnIDs) { // else the store has assigned none
			ids[i] = batch[i].ID
		}
	}
	for i, err := range errs {
		errs[i] = pushed(err, made[i])
	}
	pushing.End(ctx, batch, errs...)
	return ids, q.fail("push", "", batchError(errs))
}

// prepare validates a message, and gives it an id where it has none and the store assigns none.
func (q *queue) prepare(ctx context.Context, m *Message) (madeID bool, err error) {
	if err = cmp.Or(valid.Context(ctx), valid.Unique(m, q.traits), valid.Replace(m, q.traits)); err != nil {
		return false, err
	}
	if m.ID == "" && q.Supports(OwnIDs) {
		m.ID, madeID = ids.New(), true
	}
	if err = valid.Message(m, q.traits); err != nil {
		return madeID, err
	}
	if m.Spread != 0 { // added here, so that no store needs to know of it
		part := time.Duration(q.random(int64(m.Spread) + 1))
		if m.Due.IsZero() {
			m.Delay += part
		} else {
			m.Due = m.Due.Add(part)
		}
		m.Spread = 0
	}
	if m.Limits == nil {
		return madeID, nil
	}
	m.Headers, err = limits.Add(m.Headers, m.Limits)
	m.Limits = nil
	return madeID, err
}

// pushed returns the outcome of a push. An id that was made here belongs to no other message, so
// ErrDuplicate means that an earlier try of the client library stored it.
func pushed(err error, madeID bool) error {
	if madeID && errors.Is(err, ErrDuplicate) {
		return nil
	}
	return err
}
