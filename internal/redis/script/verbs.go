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

// The states as scripts return them.
var states = map[string]backend.State{
	"S": backend.StateScheduled, "R": backend.StateReady, "L": backend.StateInFlight, "D": backend.StateDead, "U": backend.StateDone,
}

// The number of values of a message that a script shows: of one that is gone, and of others.
const (
	goneFields  = 2
	shownFields = 6
)

// Get runs a script that shows messages: of each its state, until when its id is taken, due time,
// attempts, content, and the end of its lease or the record of its death. open adds the id and
// what the content says, and what the record of a death says.
func Get[T any](
	ctx context.Context, r *Runner, sc *Script, items []T, args Args[T], open func(m *backend.MessageInfo, item T, content, death string),
) ([]backend.MessageInfo, []error) {
	infos := make([]backend.MessageInfo, 0, len(items))
	errs := Chunked(items, Small, func(part []T) []error {
		end := len(infos) + len(part)
		errs := Each(ctx, r, sc, part, nil, args, func(reply any) error {
			item := items[len(infos)]
			infos = append(infos, backend.MessageInfo{})
			m := &infos[len(infos)-1]
			values, ok := reply.([]any)
			if ok && len(values) == 0 {
				return backend.ErrNotFound
			} else if len(values) != goneFields && len(values) != shownFields {
				return Unexpected(sc, reply)
			}
			state, _ := values[0].(string)
			if m.State = states[state]; m.State == 0 {
				return Unexpected(sc, reply)
			}
			var content, more string
			if len(values) == shownFields {
				m.Due, m.Attempts = time.UnixMilli(Int(values[2])).UTC(), int(Int(values[3]))
				content, _ = values[4].(string)
				more, _ = values[5].(string)
			}
			if m.State == backend.StateInFlight {
				m.LeaseUntil = MS(values[5])
			}
			open(m, item, content, more)
			m.UniqueUntil = MS(values[1])
			return nil
		})
		// a script that failed returned none
		infos = append(infos, make([]backend.MessageInfo, end-len(infos))...)
		return errs
	})
	return infos, errs
}

// Waits returns the state of a message that waits, by its due time and the store's clock, both in
// ms.
func Waits(due, now int64) backend.State {
	if due > now {
		return backend.StateScheduled
	}
	return backend.StateReady
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

// TrimDead runs a script that deletes dead letters which the retention does not keep. It has an age
// in microseconds and a count, each empty for no bound, and returns how many it deleted and 1 if
// there may be more.
func TrimDead(ctx context.Context, r *Runner, sc *Script, keep backend.Retention) (removed int, more bool, err error) {
	age, count := any(""), any("")
	if keep.MaxAge > 0 {
		age = Delay(keep.MaxAge)
	}
	if keep.MaxCount > 0 {
		count = keep.MaxCount
	}
	reply, err := r.Run(ctx, sc, age, count)
	if err != nil {
		return 0, false, err
	}
	values, ok := reply.([]any)
	if !ok || len(values) != 2 {
		return 0, false, Unexpected(sc, reply)
	}
	return int(Int(values[0])), Int(values[1]) == 1, nil
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
