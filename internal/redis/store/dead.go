package store

import (
	"context"
	"encoding/binary"
	"math"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
	"github.com/delayq/delayq/internal/redis/script"
)

const deadFields = 4

// ListDead is as in backend.Queue. The cursor is a place in the order of deaths.
func (s *Store) ListDead(ctx context.Context, cursor string, limit int) ([]backend.DeadLetter, string, error) {
	return pageOf(cursor, func(cursor string) ([]backend.DeadLetter, string, error) {
		return listDead(ctx, s, cursor, limit, false, parseLetter)
	})
}

// A PlacedLetter is a dead letter with the cursor behind it.
type PlacedLetter struct {
	backend.DeadLetter
	Place string
}

// ListPlaced is ListDead with a cursor behind each letter.
func (s *Store) ListPlaced(ctx context.Context, cursor string, limit int) ([]PlacedLetter, string, error) {
	return pageOf(cursor, func(cursor string) ([]PlacedLetter, string, error) {
		return listDead(ctx, s, cursor, limit, false, func(r []any) (l PlacedLetter, ok bool) {
			l.DeadLetter, ok = parseLetter(r)
			l.Place, _ = r[0].(string)
			return l, ok
		})
	})
}

// ListDeadIDs is as in backend.Queue.
func (s *Store) ListDeadIDs(ctx context.Context, cursor string, limit int) ([]string, string, error) {
	return pageOf(cursor, func(cursor string) ([]string, string, error) {
		return listDead(ctx, s, cursor, limit, true, func(r []any) (string, bool) {
			id, _ := r[1].(string)
			if !record.IsPacked([]byte(id)) {
				return "", false
			}
			return record.UnpackID([]byte(id)), true
		})
	})
}

// pageOf reads pages until one is not empty. A page leaves out entries that are no messages, of
// which there may be many.
func pageOf[T any](cursor string, read func(cursor string) ([]T, string, error)) ([]T, string, error) {
	for {
		page, next, err := read(cursor)
		if err != nil || len(page) > 0 || next == "" || next == cursor {
			return page, next, err
		}
		cursor = next
	}
}

// listDead reads a page of dead letters. It leaves out those that parse rejects.
func listDead[T any](ctx context.Context, s *Store, cursor string, limit int, idsAlone bool, parse func([]any) (T, bool)) (page []T, next string, err error) {
	next, err = script.ListDead(ctx, &s.Runner, listDeadScript, cursor, limit, idsAlone, deadFields, func(r []any) {
		if l, ok := parse(r); ok {
			page = append(page, l)
		}
	})
	return page, next, err
}

// A record of a death is due time (ms, a double) | attempts (4 bytes) | time of death (ms, a
// double) | reason.
const deathLen = 8 + 4 + 8

// parseLetter reads a dead letter. It reports false for one without an id.
func parseLetter(r []any) (l backend.DeadLetter, ok bool) {
	id, _ := r[1].(string)
	content, _ := r[2].(string)
	death, _ := r[3].(string)
	if !record.IsPacked([]byte(id)) {
		return l, false
	}
	return letterOf(record.UnpackID([]byte(id)), content, death), true
}

// letterOf reads a dead letter as far as it is readable.
func letterOf(id, content, death string) backend.DeadLetter {
	l := backend.DeadLetter{ID: id, State: backend.StateDead, Reason: unreadableReason}
	if len(death) >= deathLen {
		l.Due, l.Died, l.Reason = parseDouble(death), parseDouble(death[12:]), death[deathLen:]
		l.Attempts = int(binary.BigEndian.Uint32([]byte(death[8:])))
	}
	if l.Headers, l.Body, l.Err = record.Content([]byte(content)); l.Err != nil {
		l.Body = []byte(content)
	}
	return l
}

func parseDouble(s string) time.Time {
	return time.UnixMilli(int64(math.Float64frombits(binary.BigEndian.Uint64([]byte(s))))).UTC()
}

// Redrive is as in backend.Queue.
func (s *Store) Redrive(ctx context.Context, ids []string) []error {
	return s.byID(ctx, redriveScript, ids, script.OneOr(backend.ErrNotFound))
}

// DeleteDead is as in backend.Queue.
func (s *Store) DeleteDead(ctx context.Context, ids []string) []error {
	return s.byID(ctx, deleteDeadScript, ids, script.OneOr(backend.ErrNotFound))
}

// TrimDead is as in backend.Queue.
func (s *Store) TrimDead(ctx context.Context, r backend.Retention) (removed int, more bool, err error) {
	return script.TrimDead(ctx, &s.Runner, trimDeadScript, r)
}
