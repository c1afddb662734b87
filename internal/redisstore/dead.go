package redisstore

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
	"github.com/delayq/delayq/internal/redisscript"
)

const deadFields = 4

// ListDead is as in backend.DeadLetters. The cursor is the last one's place in the order of deaths.
func (s *Store) ListDead(ctx context.Context, cursor string, limit int) ([]backend.DeadLetter, string, error) {
	after, err := parseCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	reply, err := s.Run(ctx, listDeadScript, after, limit+1)
	if err != nil {
		return nil, "", err
	}
	r, ok := reply.([]any)
	if !ok || len(r)%deadFields != 0 {
		return nil, "", fmt.Errorf("script list_dead: unexpected reply %v", reply)
	}
	var ls []backend.DeadLetter
	var last string
	for i := 0; i < len(r); i += deadFields {
		if len(ls) == limit {
			return ls, last, nil
		}
		l, err := parseLetter(r[i : i+deadFields])
		if err != nil {
			return nil, "", fmt.Errorf("script list_dead: %w", err)
		}
		ls = append(ls, l)
		last, _ = r[i].(string)
	}
	return ls, "", nil
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

func parseLetter(r []any) (l backend.DeadLetter, err error) {
	id, _ := r[1].(string)
	content, _ := r[2].(string)
	grave, _ := r[3].(string)
	if len(grave) < graveLen || !record.IsPacked([]byte(id)) {
		return l, record.ErrCorrupt
	}
	l = backend.DeadLetter{
		ID:       record.UnpackID([]byte(id)),
		Due:      parseDouble(grave),
		Attempts: int(binary.BigEndian.Uint32([]byte(grave[8:]))),
		Died:     parseDouble(grave[12:]),
		Reason:   grave[graveLen:],
	}
	l.Headers, l.Body, err = record.Content([]byte(content))
	return l, err
}

func parseDouble(s string) time.Time {
	return time.UnixMilli(int64(math.Float64frombits(binary.BigEndian.Uint64([]byte(s))))).UTC()
}

// Redrive is as in backend.DeadLetters.
func (s *Store) Redrive(ctx context.Context, ids []string) []error {
	return s.byID(ctx, redriveScript, ids, redisscript.OneOr(backend.ErrNotFound))
}

// DeleteDead is as in backend.DeadLetters.
func (s *Store) DeleteDead(ctx context.Context, ids []string) []error {
	return s.byID(ctx, deleteDeadScript, ids, redisscript.OneOr(backend.ErrNotFound))
}
