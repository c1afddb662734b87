package list

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/delayq/delayq/backend"
)

// Dead is as in backend.Queue.
func (q *Queue) Dead(ctx context.Context, bs []backend.Burial) []error {
	return each(ctx, q, bs, func(b backend.Burial) error {
		m, err := q.held(b.Lease)
		if err != nil {
			return err
		}
		q.store.remove(m)
		m.token, m.reason, m.died = 0, b.Reason, q.clock.Now()
		q.store.add(m, true)
		return nil
	})
}

// ListDead is as in backend.DeadLetters. The cursor is the place of the last one.
func (q *Queue) ListDead(ctx context.Context, cursor string, limit int) (ls []backend.DeadLetter, next string, err error) {
	if err := q.ready(ctx); err != nil {
		return nil, "", err
	}
	var after uint64
	if cursor != "" {
		if after, err = strconv.ParseUint(cursor, 10, 64); err != nil {
			return nil, "", backend.Invalid("cursor", cursor, "one that a listing returned")
		}
	}
	q.store.mu.Lock()
	defer q.store.mu.Unlock()
	from, _ := slices.BinarySearchFunc(q.store.dead, after+1, byPlace)
	rest := q.store.dead[from:]
	for _, m := range rest[:min(limit, len(rest))] {
		ls = append(ls, backend.DeadLetter{
			ID: m.ID, Body: bytes.Clone(m.Body), Headers: maps.Clone(m.Headers), Due: m.Due, Attempts: m.attempts, Reason: m.reason, Died: m.died,
		})
	}
	if len(rest) > len(ls) {
		next = strconv.FormatUint(rest[len(ls)-1].place, 10)
	}
	return ls, next, nil
}

// Redrive is as in backend.DeadLetters.
func (q *Queue) Redrive(ctx context.Context, ids []string) []error {
	return each(ctx, q, ids, func(id string) error {
		m := q.store.buried(id)
		if m == nil {
			return backend.ErrNotFound
		}
		q.store.remove(m)
		m.attempts, m.Due = 0, q.clock.Now()
		q.store.add(m, false)
		return nil
	})
}

// DeleteDead is as in backend.DeadLetters.
func (q *Queue) DeleteDead(ctx context.Context, ids []string) []error {
	return each(ctx, q, ids, func(id string) error {
		m := q.store.buried(id)
		if m == nil {
			return backend.ErrNotFound
		}
		q.store.remove(m)
		return nil
	})
}
