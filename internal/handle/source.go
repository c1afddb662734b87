package handle

import (
	"context"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
)

// Messages are the messages of one queue in a store. The methods are as in [backend.Queue], the end
// of a context included; the handle has checked that it is open and that ctx has not ended.
//
// A change that makes messages due sooner than others may expect wakes the handles on the queue:
// Schedule, Nack, Extend to a sooner end, Reschedule, Redrive, and the end of a pause.
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
	ListDead(ctx context.Context, cursor string, limit int) ([]backend.DeadLetter, string, error)
	ListDeadIDs(ctx context.Context, cursor string, limit int) ([]string, string, error)
	Redrive(ctx context.Context, ids []string) []error
	DeleteDead(ctx context.Context, ids []string) []error
	TrimDead(ctx context.Context, r backend.Retention) (removed int, more bool, err error)
}

// A Claim is the outcome of a look for due messages.
type Claim struct {
	Deliveries []backend.Delivery // none when none is due, or the queue is paused

	// Now is the store's clock at the look. Next is when to look again: the next due time, lease end
	// or end of a pause, or Now when more is due than was claimed. Zero is nothing to wait for. It
	// is looked at only where there are no deliveries.
	Now, Next time.Time
}

// A Source is a queue's messages, and how its handle waits for them.
type Source struct {
	Messages
	Name string // by which the hub wakes the handle

	// More returns further names. It is nil for none.
	More func() []string

	// Woken is told of each wake-up: by which name, and when a message becomes due, or the zero time
	// for at once. It returns when that is by the clock of Claim. It is nil where the two clocks are
	// one. It neither blocks nor calls the handle.
	Woken func(name string, due time.Time) time.Time

	// Claim leases due messages, up to limit or to the store's own bound. Its context does not end.
	Claim func(ctx context.Context, limit int, lease time.Duration) (Claim, error)

	// Count adds to the queue's activity. It is nil where the store does not keep any.
	Count func(ctx context.Context, a backend.Activity) error

	// Within returns the messages as they are inside a transaction of the caller. It is nil where the
	// store has no transactions that a caller keeps open.
	Within func(tx any) (Changes, error)

	// Clock is the one that a claim's Now and Next are by, to sleep on. Nil: they are by the server's
	// clock, and the handle sleeps for the difference.
	Clock clockwork.Clock

	// Maintain does a queue's background work when no Receive has waited for IdleFor, and returns
	// when to do it again, without deliveries. It is nil for none.
	Maintain func(ctx context.Context) (Claim, error)
	IdleFor  time.Duration
}
