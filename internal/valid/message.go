package valid

import (
	"unicode/utf8"

	"github.com/delayq/delayq/backend"
)

// Message checks a message that is pushed, except for what [Unique] and [Replace] check.
func Message(m *backend.Message, t backend.Traits) error {
	if err := pushID(m.ID, t); err != nil {
		return err
	}
	if err := Body(m.Body, t); err != nil {
		return err
	}
	if err := UserHeaders(m.Headers, t); err != nil {
		return err
	}
	if m.Limits != nil {
		if err := limits(m, t); err != nil {
			return err
		}
	}
	if err := Time("message", m.Due, m.Delay, t); err != nil || m.Spread == 0 {
		return err
	}
	if err := Spread(m.Spread); err != nil {
		return err
	}
	if m.Due.IsZero() { // the end of the time that the message may be spread over
		return Delay(m.Delay+m.Spread, t)
	}
	return Due(m.Due.Add(m.Spread))
}

// Unique checks UniqueFor, before a message without an id gets one: no caller would push that id
// again.
func Unique(m *backend.Message, t backend.Traits) error {
	switch {
	case m.UniqueFor == 0:
		return nil
	case !t.Supports(backend.UniqueWindows):
		return unsupported(backend.UniqueWindows.String(), t)
	case m.ID == "":
		return backend.Invalid("UniqueFor", Described("without an ID"), "with an ID, which is what stays taken")
	}
	return Window(m.UniqueFor)
}

// Replace checks Replace and what goes with it, before a message without an id gets one.
func Replace(m *backend.Message, t backend.Traits) error {
	switch {
	case m.MaxWait != 0 && !m.Replace:
		return backend.Invalid("MaxWait", Described("without Replace"), "with Replace, whose due times it bounds")
	case m.AfterInFlight && !m.Replace:
		return backend.Invalid("AfterInFlight", Described("without Replace"), "with Replace, which it extends")
	case !m.Replace:
		return nil
	case !t.Supports(backend.Replacing):
		return unsupported(backend.Replacing.String(), t)
	case m.AfterInFlight && !t.Supports(backend.ReplacingInFlight):
		return unsupported(backend.ReplacingInFlight.String(), t)
	case m.ID == "":
		return backend.Invalid("Replace", Described("without an ID"), "with the ID of the message to replace")
	case m.UniqueFor != 0:
		return backend.Invalid("Replace", Described("with UniqueFor"), "one of the two")
	case m.MaxWait == 0:
		return nil
	}
	return Wait(m.MaxWait)
}

func pushID(id string, t backend.Traits) error {
	switch {
	case t.Supports(backend.OwnIDs):
		return ID(id)
	case id != "":
		return unsupported("pushes with an id", t)
	}
	return nil
}

// limits checks the limits of a message that has some.
func limits(m *backend.Message, t backend.Traits) error {
	l := m.Limits
	switch {
	case *l == backend.Limits{}:
		return nil
	case !t.Supports(backend.KeepingHeaders):
		return unsupported("limits of a message", t)
	case l.Attempts > 0 && !t.Supports(backend.CountingAttempts):
		return unsupported("Attempts", t)
	case l.DeadLetterExpired && l.ExpiresAfter == 0 && l.Expires.IsZero():
		return backend.Invalid("DeadLetterExpired", Described("alone"), "with ExpiresAfter or Expires")
	case !l.Expires.IsZero() && l.Expires.Before(m.Due.Add(m.Spread)):
		return backend.Invalid("Expires", l.Expires, "the latest due time or later")
	}
	err := Within("Attempts", l.Attempts, 0, MaxAttempts)
	if err == nil && l.HandlerTimeout != 0 {
		err = Timeout("HandlerTimeout", l.HandlerTimeout)
	}
	if err == nil && l.ExpiresAfter != 0 {
		err = Expiry(l.ExpiresAfter)
	}
	if err == nil && !l.Expires.IsZero() {
		err = Due(l.Expires)
	}
	return err
}

// Move checks a message's new due time.
func Move(m backend.Move, t backend.Traits) error {
	if err := ID(m.ID); err != nil {
		return err
	}
	return Time("move", m.Due, m.Delay, t)
}

// UserHeaders checks headers that the user gives.
func UserHeaders(headers map[string]string, t backend.Traits) error {
	if len(headers) > 0 && !t.Supports(backend.KeepingHeaders) {
		return unsupported("headers", t)
	}
	return Headers(headers, "")
}

// Reason returns the reason of a dead letter: the text, or as much of it as a store takes, up to the
// end of a character.
func Reason(text string) string {
	n := backend.MaxReason
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
