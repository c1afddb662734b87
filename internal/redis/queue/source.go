package queue

import (
	"context"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/script"
)

// Messages are one queue's messages in Redis. The methods are as in package backend; the handle
// checks whether it is open.
type Messages interface {
	Schedule(ctx context.Context, ms []backend.Message) []error
	Ack(ctx context.Context, ls []backend.Lease) []error
	Nack(ctx context.Context, rs []backend.Return) []error
	Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error)
	Dead(ctx context.Context, bs []backend.DeadLetterRequest) []error
	Cancel(ctx context.Context, ids []string) []error
	Reschedule(ctx context.Context, ms []backend.Move) []error
	Stats(ctx context.Context) (backend.Stats, error)
	Get(ctx context.Context, ids []string) ([]backend.MessageInfo, []error)
	Peek(ctx context.Context, cursor string, limit int) ([]backend.Pending, string, error)
	Purge(ctx context.Context) (removed int64, err error)
	PauseAll(ctx context.Context, p backend.Pause) error
	ResumeAll(ctx context.Context) error
	Paused(ctx context.Context) (paused bool, until time.Time, err error)
	ListDead(ctx context.Context, cursor string, limit int) ([]backend.DeadLetter, string, error)
	ListDeadIDs(ctx context.Context, cursor string, limit int) ([]string, string, error)
	Redrive(ctx context.Context, ids []string) []error
	DeleteDead(ctx context.Context, ids []string) []error
	TrimDead(ctx context.Context, r backend.Retention) (removed int, more bool, err error)

	// Channel is where a message that becomes the head is announced, with its due time in ms.
	Channel() string
}

// A Claimer leases up to limit due messages. name identifies the claim, so that a repeated claim
// finds the messages that its first try leased.
type Claimer func(ctx context.Context, limit int, lease time.Duration, name string) (script.Claim, error)

// A Maintainer runs a queue's background work (ended leases, handover to Java) while no Receive
// waits. It returns no deliveries.
type Maintainer func(ctx context.Context) (script.Claim, error)

// A Source is a queue's messages and how its handle claims them.
type Source struct {
	Messages
	Claim Claimer
	Clock clockwork.Clock // nil for the server's own

	// Triggered says that a key expires when the first message is due, and wakes the handle.
	Triggered bool

	// Maintain is nil for no background work. It runs when no Receive has waited for IdleFor.
	Maintain Maintainer
	IdleFor  time.Duration
}
