package store

import (
	"context"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/script"
)

// An unreadable message is one that a claim has leased and that this package cannot have written.
type unreadable struct {
	member string
	until  time.Time // the end of its lease
}

const unreadableReason = "the stored record is unreadable; the body is all of it"

// putAside makes dead letters of unreadable messages, so that a user can list, redrive or delete
// them whole. A message without an id cannot become one: then only its place in the queue is
// removed.
func (s *Store) putAside(ctx context.Context, c *script.Claim, bad []unreadable) {
	if len(bad) == 0 {
		return
	}
	c.Next = c.Now // there may be more
	var letters []backend.DeadLetterRequest
	var nameless []string
	for _, u := range bad {
		lease, err := leaseOf(u.member)
		if err != nil {
			nameless = append(nameless, u.member)
			s.Log.Warn("delayq: an entry of the queue is no message; it is left out", "member", u.member)
			continue
		}
		lease.Token = until(lease.Token, u.until)
		letters = append(letters, backend.DeadLetterRequest{Lease: lease, Reason: unreadableReason})
		s.Log.Warn("delayq: a message is unreadable; it becomes a dead letter", "id", lease.ID)
	}
	s.dropStale(ctx, s.Client, nameless)
	for i, err := range s.Dead(ctx, letters) {
		if err != nil {
			s.Log.Warn("delayq: putting an unreadable message aside failed; it is tried again when its lease ends", "id", letters[i].ID, "err", err)
		}
	}
}
