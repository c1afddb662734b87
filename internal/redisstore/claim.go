package redisstore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
	"github.com/delayq/delayq/internal/redisqueue"
	"github.com/delayq/delayq/internal/redisscript"
)

// Claim leases up to limit due messages in one script. name tells this claim from all others, so that
// a repeated one finds what its first try has leased.
func (s *Store) Claim(ctx context.Context, limit int, lease time.Duration, name string) (redisqueue.Claim, error) {
	reply, err := s.Run(ctx, claimScript, min(limit, redisscript.ChunkMessages), redisscript.Delay(lease), name)
	if err != nil {
		return redisqueue.Claim{}, err
	}
	return parseClaim(reply)
}

// A claim's reply is the time, the next event, the end of the leases, and a few fields for each message.
const (
	claimHead   = 3
	claimFields = 3
)

func parseClaim(reply any) (c redisqueue.Claim, err error) {
	r, ok := reply.([]any)
	if !ok || len(r) < claimHead || (len(r)-claimHead)%claimFields != 0 {
		return c, fmt.Errorf("script claim: unexpected reply %v", reply)
	}
	c.Now, c.Next = redisscript.US(r[0]), redisscript.MS(r[1])
	until := redisscript.MS(r[2])
	r = r[claimHead:]
	if len(r) == 0 {
		return c, nil
	}
	c.Deliveries = make([]backend.Delivery, len(r)/claimFields)
	for i := range c.Deliveries {
		if err := parseDelivery(&c.Deliveries[i], r[i*claimFields:], until); err != nil {
			return redisqueue.Claim{}, fmt.Errorf("script claim: %w", err)
		}
	}
	return c, nil
}

// parseDelivery reads a member, what is stored of the message, and its due time with how often it came back untouched.
func parseDelivery(d *backend.Delivery, r []any, end time.Time) error {
	member, _ := r[0].(string)
	rec, _ := r[1].(string)
	when, _ := r[2].(string)
	lease, err := leaseOf(member)
	if err != nil || len(rec) < seqLen {
		return record.ErrCorrupt
	}
	due, untouched, _ := strings.Cut(when, " ")
	*d = backend.Delivery{
		ID: lease.ID, Token: until(lease.Token, end), Until: end,
		Due:     time.UnixMilli(redisscript.Int(due)).UTC(),
		Attempt: int(lease.Token.Lo) + 1 - int(redisscript.Int(untouched)),
	}
	d.Headers, d.Body, err = record.Content([]byte(rec[seqLen:]))
	return err
}
