package redisson

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
	"github.com/delayq/delayq/internal/redis/script"
)

const deadFields = 3

// ListDead is as in backend.Queue. The cursor is the last one's place in the order of deaths. A
// body that the codec cannot read is the payload unchanged. A letter whose record is gone has an
// error.
func (s *store) ListDead(ctx context.Context, cursor string, limit int) ([]backend.DeadLetter, string, error) {
	var ls []backend.DeadLetter
	next, err := script.ListDead(ctx, &s.Runner, listDeadScript, cursor, limit, false, deadFields, func(r []any) {
		key, _ := r[1].(string)
		death, _ := r[2].(string)
		ls = append(ls, s.letter(key, 0, []byte(death)))
	})
	return ls, next, err
}

// ListDeadIDs is as in backend.Queue.
func (s *store) ListDeadIDs(ctx context.Context, cursor string, limit int) ([]string, string, error) {
	var ids []string
	next, err := script.ListDead(ctx, &s.Runner, listDeadScript, cursor, limit, true, deadFields, func(r []any) {
		key, _ := r[1].(string)
		origin := int64(0)
		if death, _ := r[2].(string); len(death) >= deathLen {
			origin = double([]byte(death[8:]))
		}
		ids = append(ids, s.id(key, origin))
	})
	return ids, next, err
}

// A record of a death is due time and origin (ms, doubles) | attempts (4 bytes) | time of death
// (ms, a double) | length of the reason (4 bytes) | reason | member.
const deathLen = 8 + 8 + 4 + 8 + 4

// unreadableReason is the reason of a dead letter whose record is gone or cut.
const unreadableReason = "the record of the death is gone or unreadable; the body is all of it"

// letter reads a dead letter as far as it is readable. Without a record the origin completes its id:
// DeleteDead goes by the key alone, and Redrive does not find it.
func (s *store) letter(key string, origin int64, death []byte) backend.DeadLetter {
	l := backend.DeadLetter{ID: s.id(key, origin), State: backend.StateDead, Reason: unreadableReason}
	if len(death) < deathLen || uint64(len(death)) < deathLen+uint64(binary.BigEndian.Uint32(death[28:])) {
		l.Body, l.Err = death, record.ErrCorrupt
		return l
	}
	reason := deathLen + int(binary.BigEndian.Uint32(death[28:]))
	l.ID, l.Due, l.Died = s.id(key, double(death[8:])), parseDouble(death), parseDouble(death[20:])
	l.Attempts, l.Reason = int(binary.BigEndian.Uint32(death[16:])), string(death[deathLen:reason])
	m, err := ParseMember(death[reason:])
	if err != nil {
		l.Body, l.Err = bytes.Clone(death[reason:]), err
		return l
	}
	if l.Headers, l.Body, l.Err = s.open(m.Payload); l.Err != nil {
		l.Body = bytes.Clone(m.Payload)
	}
	return l
}

func parseDouble(b []byte) time.Time { return time.UnixMilli(double(b)).UTC() }

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
