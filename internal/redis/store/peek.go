package store

import (
	"context"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
	"github.com/delayq/delayq/internal/redis/script"
)

// Get is as in backend.Queue.
func (s *Store) Get(ctx context.Context, ids []string) ([]backend.MessageInfo, []error) {
	return script.Get(ctx, &s.Runner, getScript, ids, func(args []any, id string) []any {
		return append(args, packed(id))
	}, func(m *backend.MessageInfo, id, content, death string) {
		m.ID = id
		switch m.State {
		case backend.StateDone:
		case backend.StateDead:
			*m = letterOf(id, content, death)
		default:
			if m.Headers, m.Body, m.Err = record.Content([]byte(content)); m.Err != nil {
				m.Body = []byte(content)
			}
		}
	})
}

const pendingFields = 4

// pendingHead is the number of values before the messages.
const pendingHead = 3

// Peek is as in backend.Queue. The cursor is a place: a due time in ms and a member.
func (s *Store) Peek(ctx context.Context, cursor string, limit int) (page []backend.Pending, next string, err error) {
	return pageOf(cursor, func(cursor string) ([]backend.Pending, string, error) { return s.peek(ctx, cursor, limit) })
}

func (s *Store) peek(ctx context.Context, cursor string, limit int) (page []backend.Pending, next string, err error) {
	due, member, err := placeOf(cursor)
	if err != nil {
		return nil, "", err
	}
	reply, err := s.afterExpired(ctx, peekScript, min(limit, script.ChunkMessages), due, member)
	if err != nil {
		return nil, "", err
	}
	r, ok := reply.([]any)
	if !ok || len(r)%pendingFields != pendingHead {
		return nil, "", script.Unexpected(peekScript, reply)
	}
	for i := pendingHead; i < len(r); i += pendingFields {
		// a claim puts the others aside
		if p, err := parsePending(r[i:i+pendingFields], script.Int(r[2])); err == nil {
			page = append(page, p)
		}
	}
	return page, cursorAt(r), nil
}

func parsePending(r []any, now int64) (p backend.Pending, err error) {
	member, _ := r[1].(string)
	content, _ := r[3].(string)
	lease, err := leaseOf(member)
	if err != nil {
		return p, err
	}
	due := script.Int(r[0])
	p = backend.Pending{ID: lease.ID, State: script.Waits(due, now), Due: time.UnixMilli(due).UTC(), Attempts: int(script.Int(r[2]))}
	p.Headers, p.Body, err = record.Content([]byte(content))
	return p, err
}

// cursorAt is the cursor of the place that a reply begins with, or nothing.
func cursorAt(r []any) string {
	due, _ := r[0].(string)
	member, _ := r[1].(string)
	if due == "" {
		return ""
	}
	return due + "." + hex.EncodeToString([]byte(member))
}

func placeOf(cursor string) (due, member string, err error) {
	if cursor == "" {
		return "", "", nil
	}
	due, encoded, _ := strings.Cut(cursor, ".")
	raw, err := hex.DecodeString(encoded)
	if _, err2 := strconv.ParseInt(due, 10, 64); err != nil || err2 != nil || len(raw) == 0 {
		return "", "", backend.Invalid("cursor", cursor, "one that Peek returned")
	}
	return due, string(raw), nil
}

// Purge is as in backend.Queue: one script, whose time does not depend on the number of messages.
func (s *Store) Purge(ctx context.Context) (removed int64, err error) {
	return script.Purge(ctx, &s.counts, purgeScript)
}
