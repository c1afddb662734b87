package redisson

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
	"github.com/delayq/delayq/internal/redis/script"
)

const deadFields = 3

// ListDead is as in backend.Queue. The cursor is the last one's place in the order of deaths. A
// body that the codec cannot read is the payload unchanged.
func (s *store) ListDead(ctx context.Context, cursor string, limit int) ([]backend.DeadLetter, string, error) {
	var ls []backend.DeadLetter
	var unread error
	next, err := script.ListDead(ctx, &s.Runner, listDeadScript, cursor, limit, false, deadFields, func(r []any) {
		key, _ := r[1].(string)
		death, _ := r[2].(string)
		l, err := s.letter(key, []byte(death))
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
	next, err := script.ListDead(ctx, &s.Runner, listDeadScript, cursor, limit, true, deadFields, func(r []any) {
		key, _ := r[1].(string)
		if death, _ := r[2].(string); len(death) >= deathLen {
			ids = append(ids, s.id(key, double([]byte(death[8:]))))
		}
	})
	return ids, next, err
}

// A record of a death is due time and origin (ms, doubles) | attempts (4 bytes) | time of death
// (ms, a double) | length of the reason (4 bytes) | reason | member.
const deathLen = 8 + 8 + 4 + 8 + 4

func (s *store) letter(key string, death []byte) (l backend.DeadLetter, err error) {
	if len(death) < deathLen || uint64(len(death)) < deathLen+uint64(binary.BigEndian.Uint32(death[28:])) {
		return l, record.ErrCorrupt
	}
	reason := deathLen + int(binary.BigEndian.Uint32(death[28:]))
	m, err := ParseMember(death[reason:])
	if err != nil {
		return l, err
	}
	l = backend.DeadLetter{
		ID:       s.id(key, double(death[8:])),
		State:    backend.StateDead,
		Due:      time.UnixMilli(double(death)).UTC(),
		Attempts: int(binary.BigEndian.Uint32(death[16:])),
		Died:     time.UnixMilli(double(death[20:])).UTC(),
		Reason:   string(death[deathLen:reason]),
	}
	if l.Headers, l.Body, l.Err = s.open(m.Payload); l.Err != nil {
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

// TrimDead is as in backend.Queue.
func (s *store) TrimDead(ctx context.Context, r backend.Retention) (removed int, more bool, err error) {
	return script.TrimDead(ctx, &s.Runner, trimDeadScript, r)
}

func (s *store) byKey(ctx context.Context, sc *script.Script, ids []string) []error {
	known, errs := s.known(ids)
	return merge(errs, script.Chunked(known, script.Small, func(part []identity) []error {
		return script.Each(ctx, &s.Runner, sc, part, nil, func(args []any, id identity) []any {
			return append(args, id.key)
		}, script.OneOr(backend.ErrNotFound))
	}))
}
