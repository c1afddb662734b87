package script

import (
	"context"
	"fmt"
	"slices"

	"github.com/delayq/delayq/backend"
)

// Chunks keep a script short, and its arguments within the size that a server accepts.
const (
	ChunkMessages = 500
	chunkBytes    = 4 << 20
)

// Chunked calls do for chunks of items, and joins their outcomes.
func Chunked[T any](items []T, size func(T) int, do func([]T) []error) []error {
	var all []error
	for start := 0; start < len(items); {
		end, bytes := start, 0
		for end < len(items) && end-start < ChunkMessages && (end == start || bytes+size(items[end]) <= chunkBytes) {
			bytes += size(items[end])
			end++
		}
		if errs := do(items[start:end]); errs != nil {
			if all == nil {
				all = make([]error, len(items))
			}
			copy(all[start:], errs)
		}
		start = end
	}
	return all
}

// Small is the size of items that are small.
func Small[T any](T) int { return 0 }

// Each runs a script on some items and returns an error for each outcome. The items' arguments come
// after all. A script that has had its time may stop early, with outcomes for the first items only.
// Then it is run again for the others.
func Each[T any](ctx context.Context, r *Runner, sc *Script, items []T, all []any, args func([]any, T) []any, outcome func(any) error) []error {
	var errs []error
	for done := 0; done < len(items); {
		rest := slices.Clip(all)
		for _, it := range items[done:] {
			rest = args(rest, it)
		}
		reply, err := r.Run(ctx, sc, rest...)
		reply = r.Heard(reply)
		n := len(items) - done
		if some, ok := reply.([]any); ok && len(some) > 0 && len(some) < n {
			n = len(some)
		}
		part := Outcomes(sc, n, reply, err, func(_ int, reply any) error { return outcome(reply) })
		if part != nil && errs == nil {
			errs = make([]error, len(items))
		}
		if part != nil {
			copy(errs[done:], part)
		}
		done += n
	}
	return errs
}

// Heard takes from a reply the reason why a script could not announce a message, and logs it.
func (r *Runner) Heard(reply any) any {
	pair, ok := reply.([]any)
	if !ok || len(pair) != 2 {
		return reply
	}
	why, ok := pair[1].(string)
	if _, list := pair[0].([]any); !ok || !list && pair[0] != int64(1) {
		return reply
	}
	if r.Log != nil {
		r.Log.Warn("delayq: a stored message could not be announced; workers find it at their next claim", "err", why)
	}
	return pair[0]
}

// AllDone is the reply of a script that succeeded with each of its items.
const AllDone = int64(1)

// Outcomes returns an error for each outcome in the reply of a script that ran on n items, or nil where all
// succeeded.
func Outcomes(sc *Script, n int, reply any, err error, outcome func(int, any) error) []error {
	if err != nil {
		return backend.FailAll(n, err)
	}
	if reply == AllDone {
		return nil
	}
	replies, ok := reply.([]any)
	if !ok || len(replies) != n {
		return backend.FailAll(n, Unexpected(sc, reply))
	}
	var errs []error
	for i, r := range replies {
		if err := outcome(i, r); err != nil {
			if errs == nil {
				errs = make([]error, n)
			}
			errs[i] = err
		}
	}
	return errs
}

// Unexpected returns the error of a reply that the script cannot have returned.
func Unexpected(sc *Script, reply any) error {
	return fmt.Errorf("script %s: unexpected reply %.200q", sc.name, fmt.Sprint(reply))
}

// OneOr returns nil for 1, ErrUnknown for 2, and else err.
func OneOr(err error) func(any) error {
	return func(reply any) error {
		switch reply {
		case int64(1):
			return nil
		case int64(2):
			return ErrUnknown
		default:
			return err
		}
	}
}

// Stored returns the error of a push.
func Stored(reply any) error {
	switch reply {
	case int64(3):
		return backend.Duplicate(backend.StateInFlight)
	case int64(4):
		return backend.Duplicate(backend.StateDead)
	case int64(5):
		return backend.Duplicate(backend.StateDone)
	default:
		return OneOr(backend.Duplicate(backend.StateScheduled))(reply)
	}
}

// Waited returns the error of an operation on a message that must be waiting.
func Waited(reply any) error {
	switch reply {
	case "OK":
		return nil
	case "HELD":
		return backend.ErrInFlight
	case "UNKNOWN":
		return ErrUnknown
	default:
		return backend.ErrNotFound
	}
}
