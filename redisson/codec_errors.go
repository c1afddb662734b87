package redisson

import (
	"bytes"
	"errors"
	"fmt"
)

// ErrUnreadable says that this package cannot read bytes in Redis. The error is
// an [UnreadableError].
var ErrUnreadable = errors.New("unreadable")

// UnreadableError holds bytes that something else wrote and that were not guessed at.
// It matches [ErrUnreadable].
type UnreadableError struct {
	What   string // "member", or the name of the codec that refused a payload
	Reason string // why, for people
	Bytes  []byte // all of them, a copy
}

const shownBytes = 32

// Error names the first 32 bytes at most.
func (e *UnreadableError) Error() string {
	more := ""
	if len(e.Bytes) > shownBytes {
		more = "…"
	}
	return fmt.Sprintf("unreadable %s: %s: [%x%s] (%d bytes)",
		e.What, e.Reason, e.Bytes[:min(len(e.Bytes), shownBytes)], more, len(e.Bytes))
}

// Is makes errors.Is(err, ErrUnreadable) true.
func (e *UnreadableError) Is(target error) bool { return target == ErrUnreadable }

func unreadable(what, reason string, b []byte) error {
	return &UnreadableError{What: what, Reason: reason, Bytes: bytes.Clone(b)}
}

const shownClass = 80

// ofClass names the Java class of a payload. The name is foreign text: nothing looks for such a
// class, let alone loads one.
func ofClass(name []byte) string {
	switch n := len(name); {
	case n == 0:
		return ""
	case n > shownClass:
		return fmt.Sprintf(" of the class %q… (%d bytes)", name[:shownClass], n)
	default:
		return fmt.Sprintf(" of the class %q", name)
	}
}
