package script

import (
	"time"

	"github.com/delayq/delayq/backend"
)

// A Claim is the outcome of a script that leases messages.
type Claim struct {
	Deliveries []backend.Delivery

	// Now is the store's time of the claim. Next is when the next message becomes due or the next
	// lease ends; it is zero when there is neither.
	Now, Next time.Time
}

// NewClaim reads the first two values of a reply: the time in microseconds, and the next event in
// milliseconds or -1. It reports false for a reply with fewer than n values.
func NewClaim(reply any, n int) (c Claim, values []any, ok bool) {
	values, ok = reply.([]any)
	if !ok || len(values) < n {
		return c, nil, false
	}
	return Claim{Now: US(values[0]), Next: MSOrNone(values[1])}, values, true
}
