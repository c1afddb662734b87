package delayq

import (
	"time"

	"github.com/delayq/delayq/backend"
)

// Message is one message of a PushBatch. Its zero value is a message without content,
// due at once.
type Message struct {
	// ID names the message: 1 to 255 bytes of UTF-8 without control characters. Empty,
	// it gets an id of its own. While a message of that id is in the queue, a further
	// one is refused with [ErrDuplicate]. A store that makes the ids itself, which lacks the
	// feature [OwnIDs], answers [ErrUnsupported] to one that is given.
	ID string

	// Body is up to 16 MiB, any bytes. The queue keeps no reference to it.
	Body []byte

	// Headers are up to 64 KiB in all, with 8 bytes for each; a key is 1 to 255 bytes of UTF-8 without control
	// characters and does not begin with "delayq-"; a value is any bytes. A store without
	// the feature [Headers] answers [ErrUnsupported] to any.
	Headers map[string]string

	// Due is when the message may be handed out, from 1970 to 2200; in the past it is
	// due at once. It is taken as given, by the store's clock. Delay, up to a hundred
	// years, counts from the store's own now, whatever the clock here shows. At most one is set.
	Due   time.Time
	Delay time.Duration

	// UniqueFor, 1 ms to 400 days, keeps the ID taken for that long from the push on, by the store's clock:
	// also when the message is done, dead or cancelled, a further push of the ID is refused with [ErrDuplicate]
	// until then, with UniqueFor or without. A refused push lengthens nothing. It asks for an ID. 0 is off: the
	// ID is free when the message is gone. A store without the feature [UniqueWindows] answers [ErrUnsupported].
	UniqueFor time.Duration
}

// PushOption sets a part of a message in Push.
type PushOption func(*Message) error

func (m *Message) apply(opts []PushOption) error {
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
