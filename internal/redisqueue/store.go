package redisqueue

import (
	"context"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
)

// Messages are a queue's, as scripts keep them. The methods are as in package backend, without regard to
// whether the handle is open.
type Messages interface {
	Schedule(ctx context.Context, ms []backend.Message) []error
	Ack(ctx context.Context, ls []backend.Lease) []error
	Nack(ctx context.Context, rs []backend.Return) []error
	Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error)
	Dead(ctx context.Context, bs []backend.Burial) []error
	Cancel(ctx context.Context, ids []string) []error
	Reschedule(ctx context.Context, ms []backend.Move) []error
	Stats(ctx context.Context) (backend.Stats, error)
	Peek(ctx context.Context, cursor string, limit int) ([]backend.Pending, string, error)
	Purge(ctx context.Context) (removed int64, err error)
	ListDead(ctx context.Context, cursor string, limit int) ([]backend.DeadLetter, string, error)
	ListDeadIDs(ctx context.Context, cursor string, limit int) ([]string, string, error)
	Redrive(ctx context.Context, ids []string) []error
	DeleteDead(ctx context.Context, ids []string) []error

	// Channel is where a message that becomes the head is announced, with its due time in ms.
	Channel() string
}

// Claim is what a claim found.
type Claim struct {
	Deliveries []backend.Delivery

	// Now is the store's time of the claim; Next is when the next message becomes due or the next
	// lease ends, zero when there is neither.
	Now, Next time.Time
}

// Claimer leases up to limit due messages. name tells this claim from all others, so that a repeated one
// finds what its first try has leased.
type Claimer func(ctx context.Context, limit int, lease time.Duration, name string) (Claim, error)

// Tender does for a queue what is to be done while nobody waits for a message. It returns no deliveries.
type Tender func(ctx context.Context) (Claim, error)

// Store is a queue's messages and how the handle gets at them.
type Store struct {
	Messages
	Claim Claimer
	Clock clockwork.Clock // nil for the server's own

	// Triggered says that a key which expires tells when the first message is due.
	Triggered bool

	// Tend is nil for nothing to do. It runs when nobody has waited for as long as Spare.
	Tend  Tender
	Spare time.Duration
}
