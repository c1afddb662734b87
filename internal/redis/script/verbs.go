package script

import (
	"context"
	"strconv"
	"time"

	"github.com/delayq/delayq/backend"
)

// Args appends an item's arguments.
type Args[T any] func(args []any, item T) []any

// Extend runs a script that makes leases end after the given time, and returns their new ends.
func Extend(
	ctx context.Context, r *Runner, sc *Script, ls []backend.Lease, lease time.Duration, args Args[backend.Lease],
) ([]time.Time, []error) {
	ends := make([]time.Time, 0, len(ls))
	errs := Chunked(ls, Small, func(part []backend.Lease) []error {
		after := len(ends) + len(part)
		errs := Each(ctx, r, sc, part, []any{Delay(lease)}, args, func(reply any) error {
			ends = append(ends, MS(reply))
			if ends[len(ends)-1].IsZero() {
				return backend.ErrLeaseLost
			}
			return nil
		})
		// a script that failed returned none
		ends = append(ends, make([]time.Time, after-len(ends))...)
		return errs
	})
	return ends, errs
}

// ListDead runs a script that lists dead letters, and calls add with the fields of each. The script
// returns the next cursor, or nothing, and then the fields. A cursor is a place in the order of
// deaths.
func ListDead(
	ctx context.Context, r *Runner, sc *Script, cursor string, limit int, idsAlone bool, fields int, add func([]any),
) (next string, err error) {
	after, err := ParseCursor(cursor)
	if err != nil {
		return "", err
	}
	reply, err := r.Run(ctx, sc, after, limit, Flag(idsAlone))
	if err != nil {
		return "", err
	}
	values, ok := reply.([]any)
	if !ok || len(values)%fields != 1 {
		return "", Unexpected(sc, reply)
	}
	for i := 1; i < len(values); i += fields {
		add(values[i : i+fields])
	}
	next, _ = values[0].(string)
	return next, nil
}

// ParseCursor reads the cursor of a listing of dead letters.
func ParseCursor(cursor string) (uint64, error) {
	if cursor == "" {
		return 0, nil
	}
	after, err := strconv.ParseUint(cursor, 10, 53)
	if err != nil {
		return 0, backend.Invalid("cursor", cursor, "one that a listing returned")
	}
	return after, nil
}

// Purge runs a script that deletes everything of a queue and returns how many messages it had.
func Purge(ctx context.Context, r *Runner, sc *Script) (int64, error) {
	reply, err := r.Run(ctx, sc)
	if err != nil {
		return 0, err
	}
	removed, ok := reply.(int64)
	if !ok {
		return 0, Unexpected(sc, reply)
	}
	return removed, nil
}
