package redisson

import (
	"context"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/script"
)

// A place is where a listing goes on: in the destination list, or behind a member of the sorted
// set.
type place struct {
	handed string // how many of the destination list were passed over; -1 for all
	due    string // in ms; empty at the beginning, as is member
	member string // its beginning
}

// pageHead is the number of values before the messages: a place, and the time.
const (
	pageHead      = 4
	waitingFields = 6
)

// Peek is as in backend.Queue. Messages handed over to Java come first, in the order in which Java
// takes them. Messages that Java itself has moved have neither id nor due time.
func (s *store) Peek(ctx context.Context, cursor string, limit int) (page []backend.Pending, next string, err error) {
	from, err := parsePlace(cursor)
	if err != nil {
		return nil, "", err
	}
	reply, err := s.Run(ctx, peekScript, min(limit, script.ChunkMessages), from.handed, from.due, from.member)
	if err != nil {
		return nil, "", err
	}
	r, ok := reply.([]any)
	if !ok || len(r) < pageHead || (len(r)-pageHead)%waitingFields != 0 {
		return nil, "", script.Unexpected(peekScript, reply)
	}
	for i := pageHead; i < len(r); i += waitingFields {
		page = append(page, s.waiting(r[i:i+waitingFields], script.Int(r[3])))
	}
	return page, cursorTo(r), nil
}

// waiting reads a message of a listing.
func (s *store) waiting(r []any, now int64) (p backend.Pending) {
	where, _ := r[0].(string)
	key, _ := r[1].(string)
	due, _ := r[2].(string)
	bytes, _ := r[5].(string)
	p.State, p.Attempts = script.Waits(script.Int(due), now), int(script.Int(r[4]))
	if due != "" {
		p.Due = time.UnixMilli(script.Int(due)).UTC()
	}
	if key != "" {
		p.ID = s.id(key, script.Int(r[3]))
	}
	payload := []byte(bytes)
	if where == "T" {
		m, err := ParseMember(payload)
		if err != nil {
			p.Body, p.Err = payload, err
			return p
		}
		payload = m.Payload
	}
	if p.Headers, p.Body, p.Err = s.open(payload); p.Err != nil {
		p.Body = payload
	}
	return p
}

func cursorTo(r []any) string {
	handed, _ := r[0].(string)
	due, _ := r[1].(string)
	member, _ := r[2].(string)
	switch {
	case handed == "":
		return ""
	case due == "":
		return "d." + handed
	}
	return "t." + due + "." + hex.EncodeToString([]byte(member))
}

func parsePlace(cursor string) (p place, err error) {
	if cursor == "" {
		return place{handed: "0"}, nil
	}
	kind, rest, _ := strings.Cut(cursor, ".")
	switch kind {
	case "d":
		p.handed = rest
	case "t":
		var raw []byte
		due, encoded, _ := strings.Cut(rest, ".")
		raw, err = hex.DecodeString(encoded)
		p = place{"-1", due, string(raw)}
	}
	if _, bad := strconv.ParseInt(p.handed+p.due, 10, 64); bad != nil || err != nil || kind == "t" && p.due == "" {
		return p, backend.Invalid("cursor", cursor, "one that Peek returned")
	}
	return p, nil
}

// Get is as in backend.Queue. It finds a message as Cancel does.
func (s *store) Get(ctx context.Context, ids []string) ([]backend.MessageInfo, []error) {
	known, errs := s.known(ids)
	found, missing := script.Get(ctx, &s.Runner, getScript, known, identityArgs, s.show)
	infos := make([]backend.MessageInfo, len(ids))
	next := 0
	for i, err := range errs {
		if err == nil {
			infos[i] = found[next]
			next++
		}
	}
	return infos, merge(errs, missing)
}

// show reads what the script returned of a message.
func (s *store) show(m *backend.MessageInfo, id identity, payload, death string) {
	m.ID = s.id(string(id.key), id.origin)
	if m.State == backend.StateDead {
		*m = s.letter(string(id.key), id.origin, []byte(death))
		return
	}
	if m.Headers, m.Body, m.Err = s.open([]byte(payload)); m.Err != nil {
		m.Body = []byte(payload)
	}
}

// Purge is as in backend.Queue, in one script: it deletes Redisson's three keys and this
// package's. Java's processes go on as on an empty queue; messages that they have taken are theirs.
func (s *store) Purge(ctx context.Context) (int64, error) {
	return script.Purge(ctx, &s.Runner, purgeScript)
}
