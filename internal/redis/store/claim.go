package store

import (
	"context"
	"strings"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
	"github.com/delayq/delayq/internal/redis/script"
)

// Claim leases up to limit due messages in one script. name tells this claim from all others, so
// that a repeated one finds the messages that its first try leased. One that finds nothing in a store
// that takes no new ids returns ErrSplit besides the times.
func (s *Store) Claim(ctx context.Context, limit int, lease time.Duration, name string) (script.Claim, error) {
	return s.claim(ctx, min(limit, script.ChunkMessages), script.Delay(lease), name)
}

// Room is after how many bytes of content a claim ends, so that a reply of large messages stays bearable.
const Room = 8 << 20

// ClaimUpTo is Claim, and leaves out messages that are due later than a time. It ends after room bytes of content.
func (s *Store) ClaimUpTo(ctx context.Context, latest time.Time, limit, room int, lease time.Duration, name string) (script.Claim, error) {
	return s.claim(ctx, min(limit, script.ChunkMessages), script.Delay(lease), name, latest.UnixMilli(), room)
}

func (s *Store) claim(ctx context.Context, args ...any) (script.Claim, error) {
	reply, err := s.Claims.Run(ctx, claimScript, args...)
	if err != nil {
		return script.Claim{}, err
	}
	return s.claimed(ctx, reply)
}

// A claim's reply is the time, the next event, the end of the leases, and a few fields for each
// message.
const (
	claimHead   = 3
	claimFields = 3
)

// claimed reads a claim's reply. An unreadable message does not affect the others.
func (s *Store) claimed(ctx context.Context, reply any) (script.Claim, error) {
	c, bad, err := parseClaim(reply)
	s.putAside(ctx, &c, bad)
	return c, err
}

func parseClaim(reply any) (c script.Claim, bad []unreadable, err error) {
	c, r, ok := script.NewClaim(reply, claimHead)
	if !ok || (len(r)-claimHead)%claimFields != 0 {
		return c, nil, script.Unexpected(claimScript, reply)
	}
	until := script.MS(r[2])
	r = r[claimHead:]
	switch {
	case len(r) == 0 && until.IsZero():
		return c, nil, ErrSplit
	case len(r) == 0:
		return c, nil, nil
	}
	c.Deliveries = make([]backend.Delivery, 0, len(r)/claimFields)
	for ; len(r) > 0; r = r[claimFields:] {
		var d backend.Delivery
		if err := parseDelivery(&d, r, until); err != nil {
			member, _ := r[0].(string)
			bad = append(bad, unreadable{member, until})
			continue
		}
		c.Deliveries = append(c.Deliveries, d)
	}
	return c, bad, nil
}

// parseDelivery reads a member, the stored message, and its due time with how often it came back
// untouched.
func parseDelivery(d *backend.Delivery, r []any, end time.Time) error {
	member, _ := r[0].(string)
	rec, _ := r[1].(string)
	lease, err := leaseOf(member)
	if err != nil || len(rec) < seqLen {
		return record.ErrCorrupt
	}
	due, untouched := r[2], ""
	if text, ok := due.(string); ok {
		due, untouched, _ = strings.Cut(text, " ")
	}
	*d = backend.Delivery{
		ID: lease.ID, Token: until(lease.Token, end), Until: end,
		Due:     time.UnixMilli(script.Int(due)).UTC(),
		Attempt: int(lease.Token.Lo) + 1 - int(script.Int(untouched)),
	}
	d.Headers, d.Body, err = record.Content([]byte(rec[seqLen:]))
	return err
}
