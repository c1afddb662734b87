package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
)

// Claim is what a claim found.
type Claim struct {
	Deliveries []backend.Delivery

	// Now is the store's time of the claim; Next is when the next message becomes due or the next
	// lease ends, zero when there is neither.
	Now, Next time.Time
}

// Claim leases up to limit due messages in one script. name tells this claim from all others, so that
// a repeated one finds what its first try has leased.
func (s *Store) Claim(ctx context.Context, limit int, lease time.Duration, name string) (Claim, error) {
	reply, err := s.run(ctx, claimScript, min(limit, chunkMessages), delayArg(lease), name)
	if err != nil {
		return Claim{}, err
	}
	return parseClaim(reply)
}

const claimFields = 5

func parseClaim(reply any) (c Claim, err error) {
	r, ok := reply.([]any)
	if !ok || len(r) < 2 || (len(r)-2)%claimFields != 0 {
		return c, fmt.Errorf("script claim: unexpected reply %v", reply)
	}
	c.Now, c.Next = parseUS(r[0]), parseMS(r[1])
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
	d = backend.Delivery{ID: lease.ID, Token: lease.Token, Due: time.UnixMilli(parseInt(r[2])).UTC(), Attempt: int(attempt), Until: parseMS(r[4])}
	d.Headers, d.Body, err = record.Content([]byte(content))
	return d, err
}

func parseInt(reply any) int64 {
	text, _ := reply.(string)
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

func parseUS(reply any) time.Time { return time.UnixMicro(parseInt(reply)).UTC() }
