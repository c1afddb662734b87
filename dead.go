package delayq

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/paging"
	"github.com/delayq/delayq/internal/settle"
	"github.com/delayq/delayq/internal/trim"
	"github.com/delayq/delayq/internal/valid"
)

// DeadLetter is a message that failed too often, or that a worker made a dead letter.
type DeadLetter = backend.DeadLetter

// DeadLetters are the dead letters of one queue. All its methods need [Redriving].
type DeadLetters struct{ q *queue }

func (q *queue) Dead() DeadLetters { return DeadLetters{q} }

// List returns up to limit dead letters, the oldest death first. cursor is "" at the start, and
// otherwise the previous call's next; next is "" after the last. 1 <= limit <= [MaxBatch].
func (l DeadLetters) List(ctx context.Context, cursor string, limit int) (letters []DeadLetter, next string, err error) {
	if err := l.check("list dead"); err != nil {
		return nil, "", err
	}
	return l.q.page(ctx, Redriving, "list dead", cursor, limit, l.q.store.ListDead)
}

// All ranges over all dead letters, the oldest death first. It ends after the first error.
func (l DeadLetters) All(ctx context.Context) iter.Seq2[DeadLetter, error] {
	return paging.All(ctx, l.List, pageOfDead)
}

const (
	pageOfDead = 100
	pageOfIDs  = 500
)

// Redrive puts dead letters back into the queue, whole, due at once, their attempts counted
// from the start. When it fails for some, [ErrNotFound] for those that are not dead, the others
// are back and the error is a [*BatchError] with an entry for each.
func (l DeadLetters) Redrive(ctx context.Context, ids ...string) error {
	return l.each(ctx, "redrive", ids, backend.Queue.Redrive)
}

// Delete deletes dead letters for good. Its errors are the same as Redrive's.
func (l DeadLetters) Delete(ctx context.Context, ids ...string) error {
	return l.each(ctx, "delete dead", ids, backend.Queue.DeleteDead)
}

// RedriveAll redrives each dead letter once, however soon it dies again, and returns how many
// came back. It lists all ids before it redrives the first letter. Contents are read only where the
// store lists nothing without them.
func (l DeadLetters) RedriveAll(ctx context.Context) (n int, err error) {
	return l.all(ctx, "redrive", l.ids, backend.Queue.Redrive)
}

// A DeadFilter selects dead letters: those that match all fields that are set.
type DeadFilter struct {
	DiedBefore   time.Time         // by the store's clock
	ReasonPrefix string            // the beginning of the reason
	Headers      map[string]string // each of them, with this value
}

// Matches reports whether the filter selects a dead letter. The zero filter selects all.
func (f DeadFilter) Matches(d DeadLetter) bool {
	for k, want := range f.Headers {
		if got, ok := d.Headers[k]; !ok || got != want {
			return false
		}
	}
	return (f.DiedBefore.IsZero() || d.Died.Before(f.DiedBefore)) && strings.HasPrefix(d.Reason, f.ReasonPrefix)
}

// RedriveWhere redrives each dead letter that the filter selects once, however soon it dies again,
// and returns how many are known to have come back, also when ctx ends it or the store fails. It
// reads all dead letters, page by page, before it redrives the first one. A filter without fields
// is invalid: use RedriveAll. Where the backend lacks [Deduplicating], letters may share an id, and
// those with the id of a selected one may be redriven in its place.
func (l DeadLetters) RedriveWhere(ctx context.Context, f DeadFilter) (n int, err error) {
	return l.all(ctx, "redrive", f.ids(l), backend.Queue.Redrive)
}

// DeleteWhere deletes the dead letters that the filter selects for good, as RedriveWhere redrives
// them, and returns how many it deleted.
func (l DeadLetters) DeleteWhere(ctx context.Context, f DeadFilter) (n int, err error) {
	return l.all(ctx, "delete dead", f.ids(l), backend.Queue.DeleteDead)
}

// ids returns a function that lists the ids of the letters that the filter selects.
func (f DeadFilter) ids(l DeadLetters) func(context.Context) ([]string, error) {
	return func(ctx context.Context) (ids []string, err error) {
		if f.DiedBefore.IsZero() && f.ReasonPrefix == "" && len(f.Headers) == 0 {
			return nil, backend.Invalid("DeadFilter", valid.Described("without fields"), "one field or more")
		}
		if err := valid.UserHeaders(f.Headers, l.q.traits); err != nil {
			return nil, err
		}
		return paging.Select(ctx, l.q.store.ListDead, pageOfDead, func(d DeadLetter) (string, bool) { return d.ID, f.Matches(d) })
	}
}

// ids lists the ids of all dead letters. Where the store lacks [Deduplicating], letters may share an
// id.
func (l DeadLetters) ids(ctx context.Context) (ids []string, err error) {
	return paging.Select(ctx, l.q.store.ListDeadIDs, pageOfIDs, func(id string) (string, bool) { return id, true })
}

// all lists ids, and then redrives or deletes these letters in batches. It returns for how many
// it did.
func (l DeadLetters) all(ctx context.Context, op string, list func(context.Context) ([]string, error), do settleDead) (n int, err error) {
	if err := l.check(op); err != nil {
		return 0, err
	}
	err = l.q.call(ctx, Redriving, op, "", nil, func() error {
		ids, err := list(ctx)
		if err != nil {
			return err
		}
		for some := range slices.Chunk(ids, pageOfIDs) {
			errs := do(l.q.store, ctx, some)
			n += settle.Succeeded(len(some), errs)
			for i, err := range errs {
				if errors.Is(err, ErrNotFound) { // another process was faster
					errs[i] = nil
				}
			}
			if err := batchError(errs); err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}

// settleDead redrives or deletes dead letters.
type settleDead func(q backend.Queue, ctx context.Context, ids []string) []error

func (l DeadLetters) each(ctx context.Context, op string, ids []string, do settleDead) error {
	if err := l.check(op); err != nil {
		return err
	}
	id, invalid := valid.IDs(ids)
	invalid = cmp.Or(invalid, l.q.validBatch(ctx, len(ids)))
	if invalid == nil && len(ids) == 0 {
		invalid = backend.Invalid("ids", valid.Described("none"), "one or more ids")
	}
	return l.q.call(ctx, Redriving, op, id, invalid, func() error { return batchError(do(l.q.store, ctx, ids)) })
}

// check rejects the zero value.
func (l DeadLetters) check(op string) error {
	if l.q == nil {
		return opError(op, "", "", backend.Invalid("dead letters", valid.Described("of no queue"), "those that Queue.Dead returns"))
	}
	return nil
}

// Trim deletes the dead letters that died maxAge ago or longer, by the store's clock, and the
// oldest of more than maxCount; 0 is no bound, and one bound is needed. It returns how many it
// deleted, also when ctx ends it or the store fails. [DeadLetterRetention] does so all the time.
func (l DeadLetters) Trim(ctx context.Context, maxAge time.Duration, maxCount int) (n int, err error) {
	if err := l.check("trim dead"); err != nil {
		return 0, err
	}
	keep := backend.Retention{MaxAge: maxAge, MaxCount: maxCount}
	invalid := valid.Retention("Trim", keep)
	if keep == (backend.Retention{}) {
		invalid = backend.Invalid("Trim", valid.Described("without a bound"), "an age, a count or both")
	}
	err = l.q.call(ctx, Redriving, "trim dead", "", invalid, func() error {
		n, err = trim.All(ctx, l.q.trimDead, keep)
		return err
	})
	return n, err
}

func (q *queue) trimDead(ctx context.Context, keep backend.Retention) (removed int, more bool, err error) {
	removed, more, err = q.store.TrimDead(ctx, keep)
	q.telemetry.Trimmed(ctx, removed)
	return removed, more, err
}
