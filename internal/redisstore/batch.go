package redisstore

import (
	"context"
	"fmt"

	"github.com/delayq/delayq/backend"
)

// Chunks keep a script short, and its arguments within what a server takes at once.
const (
	chunkMessages = 500
	chunkBytes    = 4 << 20
)

// chunked calls do for runs of items, and joins their outcomes.
func chunked[T any](items []T, size func(T) int, do func([]T) []error) []error {
	var all []error
	for start := 0; start < len(items); {
		end, bytes := start, 0
		for end < len(items) && end-start < chunkMessages && (end == start || bytes+size(items[end]) <= chunkBytes) {
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

func small[T any](T) int { return 0 }

// each runs a script on some items, whose arguments come after all, and makes an error of each outcome.
func each[T any](ctx context.Context, s *Store, sc *script, items []T, all []any, args func([]any, T) []any, outcome func(any) error) []error {
	for _, it := range items {
		all = args(all, it)
	}
	reply, err := s.run(ctx, sc, all...)
	if err != nil {
		return backend.FailAll(len(items), err)
	}
	replies, ok := reply.([]any)
	if !ok || len(replies) != len(items) {
		return backend.FailAll(len(items), fmt.Errorf("script %s: unexpected reply %v", sc.name, reply))
	}
	return outcomes(replies, outcome)
}

func outcomes(replies []any, outcome func(any) error) []error {
	var errs []error
	for i, r := range replies {
		if err := outcome(r); err != nil {
			if errs == nil {
				errs = make([]error, len(replies))
			}
			errs[i] = err
		}
	}
	return errs
}

// oneOr is nil for 1, and for 2 that nobody can tell.
func oneOr(err error) func(any) error {
	return func(reply any) error {
		switch reply {
		case int64(1):
			return nil
		case int64(2):
			return errUnknown
		default:
			return err
		}
	}
}

// waited is what take_waiting in the prelude says.
func waited(reply any) error {
	switch reply {
	case "OK":
		return nil
	case "HELD":
		return backend.ErrInFlight
	case "UNKNOWN":
		return errUnknown
	default:
		return backend.ErrNotFound
	}
}

func (s *Store) byID(ctx context.Context, sc *script, ids []string, outcome func(any) error) []error {
	return chunked(ids, small, func(part []string) []error {
		return each(ctx, s, sc, part, nil, func(args []any, id string) []any { return append(args, packed(id)) }, outcome)
	})
}
