package redisstore

import (
	"context"
	"fmt"
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

const claimFields = 5

func parseClaim(reply any) (c redisqueue.Claim, err error) {
	r, ok := reply.([]any)
	if !ok || len(r) < 2 || (len(r)-2)%claimFields != 0 {
		return c, fmt.Errorf("script claim: unexpected reply %v", reply)
	}
	c.Now, c.Next = redisscript.US(r[0]), redisscript.MS(r[1])
	for i := 2; i < len(r); i += claimFields {
		d, err := parseDelivery(r[i : i+claimFields])
		if err != nil {
			return c, fmt.Errorf("script claim: %w", err)
		}
		c.Deliveries = append(c.Deliveries, d)
	}
	return c, nil
}

func parseDelivery(r []any) (d backend.Delivery, err error) {
	member, _ := r[0].(string)
	content, _ := r[1].(string)
	attempt, _ := r[3].(int64)
	lease, err := leaseOf(member)
	if err != nil {
		return d, err
	}
	d = backend.Delivery{ID: lease.ID, Token: lease.Token, Due: time.UnixMilli(redisscript.Int(r[2])).UTC(), Attempt: int(attempt), Until: redisscript.MS(r[4])}
	d.Headers, d.Body, err = record.Content([]byte(content))
	return d, err
}
