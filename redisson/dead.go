package redisson

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
	"github.com/delayq/delayq/internal/redisscript"
)

const deadFields = 3

// ListDead is as in backend.Queue. The cursor is the last one's place in the order of deaths. The body of one
// that the codec does not read is the payload as it is.
func (s *store) ListDead(ctx context.Context, cursor string, limit int) ([]backend.DeadLetter, string, error) {
	var ls []backend.DeadLetter
	var unread error
	next, err := s.listDead(ctx, cursor, limit, false, func(r []any) {
		l, err := s.letter(r)
		if err != nil {
			unread = err
			return
		}
		ls = append(ls, l)
	})
	if err = errors.Join(err, unread); err != nil {
		return nil, "", err
	}
	return ls, next, nil
}

// ListDeadIDs is as in backend.Queue.
func (s *store) ListDeadIDs(ctx context.Context, cursor string, limit int) ([]string, string, error) {
	var ids []string
	next, err := s.listDead(ctx, cursor, limit, true, func(r []any) {
		key, _ := r[1].(string)
		if grave, _ := r[2].(string); len(grave) >= graveLen {
			ids = append(ids, s.id(key, double([]byte(grave[8:]))))
		}
	})
	return ids, next, err
}

// listDead calls add for each dead letter of a page.
func (s *store) listDead(ctx context.Context, cursor string, limit int, idsAlone bool, add func([]any)) (next string, err error) {
	after, err := parseCursor(cursor)
	if err != nil {
		return "", err
	}
	reply, err := s.Run(ctx, listDeadScript, after, limit, redisscript.Flag(idsAlone))
	if err != nil {
		return "", err
	}
	r, ok := reply.([]any)
	if !ok || len(r)%deadFields != 1 {
		return "", redisscript.Unexpected(listDeadScript, reply)
	}
	for i := 1; i < len(r); i += deadFields {
		add(r[i : i+deadFields])
	}
	if r[0] == int64(1) && len(r) > 1 {
		next, _ = r[len(r)-deadFields].(string)
	}
	return next, nil
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

// A grave is due time and origin (ms, doubles) | attempts (4 bytes) | time of death (ms, a double) | length of
// the reason (4 bytes) | reason | member.
const graveLen = 8 + 8 + 4 + 8 + 4

func (s *store) letter(r []any) (l backend.DeadLetter, err error) {
	key, _ := r[1].(string)
	text, _ := r[2].(string)
	grave := []byte(text)
	if len(grave) < graveLen || uint64(len(grave)) < graveLen+uint64(binary.BigEndian.Uint32(grave[28:])) {
		return l, record.ErrCorrupt
	}
	reason := graveLen + int(binary.BigEndian.Uint32(grave[28:]))
	m, err := ParseMember(grave[reason:])
	if err != nil {
		return l, err
	}
	l = backend.DeadLetter{
		ID:       s.id(key, double(grave[8:])),
		Due:      time.UnixMilli(double(grave)).UTC(),
		Attempts: int(binary.BigEndian.Uint32(grave[16:])),
		Died:     time.UnixMilli(double(grave[20:])).UTC(),
		Reason:   string(grave[graveLen:reason]),
	}
	if l.Headers, l.Body, err = s.open(m.Payload); err != nil {
		l.Body = bytes.Clone(m.Payload)
	}
	return l, nil
}

func double(b []byte) int64 { return int64(math.Float64frombits(binary.BigEndian.Uint64(b))) }

// Redrive is as in backend.Queue.
func (s *store) Redrive(ctx context.Context, ids []string) []error {
	return s.byKey(ctx, redriveScript, ids)
}

// DeleteDead is as in backend.Queue.
func (s *store) DeleteDead(ctx context.Context, ids []string) []error {
	return s.byKey(ctx, deleteDeadScript, ids)
}

func (s *store) byKey(ctx context.Context, sc *redisscript.Script, ids []string) []error {
	known, errs := s.known(ids)
	return merge(errs, redisscript.Chunked(known, redisscript.Small, func(part []identity) []error {
		return redisscript.Each(ctx, &s.Runner, sc, part, nil, func(args []any, id identity) []any {
			return append(args, id.key)
		}, redisscript.OneOr(backend.ErrNotFound))
	}))
}
