package queue

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/handle"
	"github.com/delayq/delayq/internal/redis/script"
)

// Messages are one queue's messages in Redis.
type Messages interface {
	handle.Messages
	Paused(ctx context.Context) (paused bool, until time.Time, err error)

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

	// Count is as in handle.Source.
	Count func(ctx context.Context, a backend.Activity) error

	// Triggered says that a key expires when the first message is due, and wakes the handle.
	Triggered bool

	// Maintain is nil for no background work. It runs when no Receive has waited for IdleFor.
	Maintain Maintainer
	IdleFor  time.Duration

	// More returns further channels, and Woken is as in handle.Source. Remove deletes what Purge
	// leaves. They may be nil.
	More   func() []string
	Woken  func(channel string, due time.Time) time.Time
	Remove func(ctx context.Context) error

	// Begin prepares the queue for a handle. Until then the source has changed nothing. It is nil where
	// there is nothing to prepare.
	Begin func(ctx context.Context) error

	// Close is called when the handle is closed. It may be nil.
	Close func()

	// Reshard changes the number of shards. It is nil for a queue that cannot have any.
	Reshard func(ctx context.Context, n int) error
}

// named returns the source of a handle, which gives each claim a name of its own.
func (s *Source) named() handle.Source {
	named := handle.Source{Messages: s.Messages, Name: s.Channel(), More: s.More, Woken: s.Woken, Count: s.Count, Clock: s.Clock, IdleFor: s.IdleFor}
	named.Claim = func(ctx context.Context, limit int, lease time.Duration) (handle.Claim, error) {
		c, err := s.Claim(ctx, limit, lease, rand.Text())
		if s.Triggered && c.Next.After(c.Now) { // the trigger wakes the handle then
			c.Next = time.Time{}
		}
		return handle.Claim(c), err
	}
	if s.Maintain != nil {
		named.Maintain = func(ctx context.Context) (handle.Claim, error) {
			c, err := s.Maintain(ctx)
			return handle.Claim(c), err
		}
	}
	return named
}
