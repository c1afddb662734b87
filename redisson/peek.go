package redisson

import (
	"context"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/script"
)

// A place is where a page begins, as the script has it: some numbers, then beginnings of members.
type place [6]string

const (
	placeNumbers  = 4
	placeCounts   = 2 // the first numbers, which are never empty
	pageHead      = 2 // the values before the messages: a place, and the time
	waitingFields = 6
)

// Peek is as in backend.Queue. Messages handed over to Java come in the order in which Java takes
// them, with the others between them by due time, as Receive takes them. Messages that Java itself
// has moved have neither id nor due time.
func (s *store) Peek(ctx context.Context, cursor string, limit int) (page []backend.Pending, next string, err error) {
	from, err := parsePlace(cursor)
	if err != nil {
		return nil, "", err
	}
	reply, err := s.Run(ctx, peekScript, min(limit, script.ChunkMessages), from[0], from[1], from[2], from[3], from[4], from[5])
	if err != nil {
		return nil, "", err
	}
	r, ok := reply.([]any)
	if !ok || len(r) < pageHead || (len(r)-pageHead)%waitingFields != 0 {
		return nil, "", script.Unexpected(peekScript, reply)
	}
	for i := pageHead; i < len(r); i += waitingFields {
		page = append(page, s.waiting(r[i:i+waitingFields], script.Int(r[1])))
	}
	return page, cursorTo(r[0]), nil
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

func cursorTo(next any) string {
	values, _ := next.([]any)
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i], _ = v.(string)
		if i >= placeNumbers {
			parts[i] = hex.EncodeToString([]byte(parts[i]))
		}
	}
	return strings.Join(parts, "_")
}

func parsePlace(cursor string) (p place, err error) {
	if cursor == "" {
		return place{"0", "0"}, nil
	}
	parts := strings.Split(cursor, "_")
	if len(parts) != len(p) {
		return p, backend.Invalid("cursor", cursor, "one that Peek returned")
	}
	for i, part := range parts {
		p[i] = part
		switch {
		case i >= placeNumbers:
			var raw []byte
			raw, err = hex.DecodeString(part)
			p[i] = string(raw)
		case i < placeCounts:
			_, err = strconv.ParseUint(part, 10, 53)
		case part != "":
			var score float64
			if score, err = strconv.ParseFloat(part, 64); math.IsNaN(score) {
				err = strconv.ErrSyntax
			}
		}
		if err != nil {
			return p, backend.Invalid("cursor", cursor, "one that Peek returned")
		}
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
