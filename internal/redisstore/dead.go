package redisstore

import (
	"context"
	"encoding/binary"
	"math"
	"strconv"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
	"github.com/delayq/delayq/internal/redisscript"
)

const deadFields = 4

// ListDead is as in backend.Queue. The cursor is a place in the order of deaths.
func (s *Store) ListDead(ctx context.Context, cursor string, limit int) ([]backend.DeadLetter, string, error) {
	return pageOf(cursor, func(cursor string) ([]backend.DeadLetter, string, error) {
		return listDead(ctx, s, cursor, limit, false, parseLetter)
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

// pageOf reads pages until one is not empty: what is no message is on none, and there may be much of that.
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
	after, err := parseCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	reply, err := s.Run(ctx, listDeadScript, after, limit, redisscript.Flag(idsAlone))
	if err != nil {
		return nil, "", err
	}
	r, ok := reply.([]any)
	if !ok || len(r)%deadFields != 1 {
		return nil, "", redisscript.Unexpected(listDeadScript, reply)
	}
	next, _ = r[0].(string)
	for i := 1; i < len(r); i += deadFields {
		if l, ok := parse(r[i : i+deadFields]); ok {
			page = append(page, l)
		}
	}
	return page, next, nil
}

func parseCursor(cursor string) (uint64, error) {
	if cursor == "" {
		return 0, nil
	}
	after, err := strconv.ParseUint(cursor, 10, 53)
	if err != nil {
		return 0, backend.Invalid("cursor", cursor, "one that a listing returned")
	}
	return after, nil
}

// A grave is due time (ms, a double) | attempts (4 bytes) | time of death (ms, a double) | reason.
const graveLen = 8 + 4 + 8

// parseLetter reads what it can of a dead letter. Without an id it is none.
func parseLetter(r []any) (l backend.DeadLetter, ok bool) {
	id, _ := r[1].(string)
	content, _ := r[2].(string)
	grave, _ := r[3].(string)
	if !record.IsPacked([]byte(id)) {
		return l, false
	}
	l.ID, l.Reason = record.UnpackID([]byte(id)), unreadableReason
	if len(grave) >= graveLen {
		l.Due, l.Died, l.Reason = parseDouble(grave), parseDouble(grave[12:]), grave[graveLen:]
		l.Attempts = int(binary.BigEndian.Uint32([]byte(grave[8:])))
	}
	var err error
	if l.Headers, l.Body, err = record.Content([]byte(content)); err != nil {
		l.Body = []byte(content)
	}
	return l, true
}

func parseDouble(s string) time.Time {
	return time.UnixMilli(int64(math.Float64frombits(binary.BigEndian.Uint64([]byte(s))))).UTC()
}

// Redrive is as in backend.Queue.
func (s *Store) Redrive(ctx context.Context, ids []string) []error {
	return s.byID(ctx, redriveScript, ids, redisscript.OneOr(backend.ErrNotFound))
}

// DeleteDead is as in backend.Queue.
func (s *Store) DeleteDead(ctx context.Context, ids []string) []error {
	return s.byID(ctx, deleteDeadScript, ids, redisscript.OneOr(backend.ErrNotFound))
}
