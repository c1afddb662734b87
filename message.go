package delayq

import (
	"time"

	"github.com/delayq/delayq/backend"
)

// Message is one message of a PushBatch. Its zero value is a message without content, due at once.
type Message = backend.Message

// PushOption sets a part of a message in Push.
type PushOption func(*Message) error

func apply(m *Message, opts []PushOption) error {
	for _, set := range opts {
		if set == nil {
			return backend.Invalid("push option", described("nil"), "the result of After, At, ID, UniqueFor or Header")
		}
		if err := set(m); err != nil {
			return err
		}
	}
	return nil
}

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
		return validDue(t)
	}
}

// ID gives the message an id, as [Message] describes. A push that may have happened can
// be repeated under it. Push answers [ErrUnsupported] where the store makes the ids; see [OwnIDs].
func ID(id string) PushOption {
	return func(m *Message) error {
		m.ID = id
		return validID(id)
	}
}

// UniqueFor keeps the id that [ID] gives taken for that long from the push on, by the store's clock, whatever becomes of
// the message: 1 ms to 400 days, 0 for off. A second push of it within that time answers [ErrDuplicate]. Push answers
// [ErrInvalid] without an ID, and [ErrUnsupported] where the store keeps no ids beyond their messages; see [UniqueWindows].
func UniqueFor(d time.Duration) PushOption {
	return func(m *Message) error {
		m.UniqueFor = d
		return validWindow(d)
	}
}

// Header adds a header, or replaces it. Push answers [ErrUnsupported] where the store keeps none; see [Headers].
func Header(key, value string) PushOption {
	return func(m *Message) error {
		if m.Headers == nil {
			m.Headers = make(map[string]string)
		}
		m.Headers[key] = value
		return nil
	}
}

var errDueAndDelay = backend.Invalid("message", described("with a due time and a delay"), "one of the two")
