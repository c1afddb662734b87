package delayq

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/delayq/delayq/backend"
)

// DeadLetter is a message that failed too often, or that a worker made a dead letter.
type DeadLetter = backend.DeadLetter

// DeadLetters are the dead letters of one queue. Its methods return [ErrUnsupported] where the
// backend lacks [Redriving].
type DeadLetters struct{ q *queue }

func (q *queue) Dead() DeadLetters { return DeadLetters{q} }

// List returns up to limit dead letters, the oldest death first, from a cursor on: "" at the
// start, then what the call before returned; next is "" after the last. 1 <= limit <= [MaxBatch].
func (l DeadLetters) List(ctx context.Context, cursor string, limit int) (letters []DeadLetter, next string, err error) {
	if err := l.check(ctx, "list dead"); err != nil {
		return nil, "", err
	}
	if err := validLimit(limit); err != nil {
		return nil, "", l.q.fail("list dead", "", err)
	}
	letters, next, err = l.q.store.ListDead(ctx, cursor, limit)
	return letters, next, l.q.fail("list dead", "", err)
}

// All ranges over all dead letters, the oldest death first. It ends after the first error.
func (l DeadLetters) All(ctx context.Context) iter.Seq2[DeadLetter, error] {
	return func(yield func(DeadLetter, error) bool) {
		for cursor := ""; ; {
			page, next, err := l.List(ctx, cursor, pageOfDead)
			if err != nil {
				yield(DeadLetter{}, err)
				return
			}
			for _, d := range page {
				if !yield(d, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			cursor = next
		}
	}
}

const pageOfDead = 100

// Redrive puts dead letters back into the queue, whole, due at once, their attempts counted
// from the start. When it fails for some, [ErrNotFound] for those that are not dead, the others
// are back and the error is a [*BatchError] with an entry for each.
func (l DeadLetters) Redrive(ctx context.Context, ids ...string) error {
	return l.each(ctx, "redrive", ids, func() []error { return l.q.store.Redrive(ctx, ids) })
}

// Delete deletes dead letters for good. Errors are those of Redrive.
func (l DeadLetters) Delete(ctx context.Context, ids ...string) error {
	return l.each(ctx, "delete dead", ids, func() []error { return l.q.store.DeleteDead(ctx, ids) })
}

// RedriveAll redrives each dead letter once, however soon it dies again, and returns how many
// came back. It lists all ids before it redrives the first letter. Contents are read only where the
// store lists nothing without them.
func (l DeadLetters) RedriveAll(ctx context.Context) (n int, err error) {
	if err := l.check(ctx, "redrive"); err != nil {
		return 0, err
	}
	ids, err := l.ids(ctx)
	if err != nil {
		return 0, l.q.fail("redrive", "", err)
	}
	for some := range slices.Chunk(ids, pageOfIDs) {
		back, err := l.redriveSome(ctx, some)
		if n += back; err != nil {
			return n, l.q.fail("redrive", "", err)
		}
	}
	return n, nil
}

// ids lists the ids of all dead letters. Where the store lacks [Deduplicating], letters may share an
// id.
func (l DeadLetters) ids(ctx context.Context) (ids []string, err error) {
	for cursor := ""; ; {
		page, next, err := l.q.store.ListDeadIDs(ctx, cursor, pageOfIDs)
		if err != nil {
			return nil, err
		}
		if ids = append(ids, page...); next == "" {
			return ids, nil
		}
		cursor = next
	}
}

func (l DeadLetters) redriveSome(ctx context.Context, ids []string) (n int, err error) {
	errs := l.q.store.Redrive(ctx, ids)
	n = len(ids)
	for i, err := range errs {
		if err != nil {
			n--
		}
		if errors.Is(err, ErrNotFound) { // another process was faster
			errs[i] = nil
		}
	}
	return n, batchError(errs)
}

const pageOfIDs = 500

func (l DeadLetters) each(ctx context.Context, op string, ids []string, do func() []error) error {
	if err := l.check(ctx, op); err != nil {
		return err
	}
	for _, id := range ids {
		if err := validID(id); err != nil {
			return l.q.fail(op, id, err)
		}
	}
	if err := l.q.validBatch(ctx, len(ids)); err != nil {
		return l.q.fail(op, "", err)
	}
	if len(ids) == 0 {
		return l.q.fail(op, "", backend.Invalid("ids", described("none"), "one or more ids"))
	}
	return l.q.fail(op, "", batchError(do()))
}

func (l DeadLetters) check(ctx context.Context, op string) error {
	if l.q == nil {
		return opError(op, "", "", backend.Invalid("dead letters", described("of no queue"), "those that Queue.Dead returns"))
	}
	return l.q.fail(op, "", firstError(l.q.lacks(Redriving, op), validContext(ctx)))
}
