package backend

import (
	"context"
	"log/slog"
	"time"

	"github.com/jonboulle/clockwork"
)

// Backend opens queues on one store: a process's memory, a Redis, a RabbitMQ.
// It is safe for concurrent use.
type Backend interface {
	// Open returns the queue of that name, made when it does not exist yet.
	// Opening one name twice gives two handles on the same queue, as two
	// processes would have. The name has passed the portable checks; a store
	// that reserves more characters answers with an [InvalidError].
	Open(ctx context.Context, name string, o Options) (Queue, error)

	// Traits says what this store promises. The answer never changes.
	Traits() Traits

	// Close closes every open queue and gives back what the backend itself
	// opened; a client that the user passed in stays open. Open after Close
	// answers [ErrClosed]. A second Close does nothing. It waits for calls that are under way for a bounded time; its error matches
	// [ErrUnavailable] where the store does not reply to them.
	Close() error
}

// Options are what package delayq passes down to every queue.
type Options struct {
	// Clock replaces the store's own clock. Nil means the store's own: TIME on
	// Redis, the broker's timers on RabbitMQ, the process's clock in memory.
	// A backend that cannot run on another clock answers [ErrUnsupported]. With
	// a clock given, a waiting Receive sleeps on that clock and on no other. A fake
	// clock jumps: who starts a timer looks at the clock once more after that, or
	// a jump between the look before and the start is slept through.
	Clock clockwork.Clock

	// Logger takes what no caller can be told: a lost connection, a degraded
	// mode. It is never nil.
	Logger *slog.Logger
}

// Queue holds the messages of one name. It is safe for concurrent use.
//
// The methods on several messages answer with one error for each, in the order
// of the arguments; nil means that all succeeded. One message's failure does
// not touch the others. A method returns when its context ends, cancelled or expired, also
// while the store does not reply. That makes the outcome of what is on the wire unknown, and repeating the call must do no harm: the error
// matches that of the context and [ErrOutcomeUnknown]. A method that has returned touches nothing of its arguments any more.
//
// After Close every method answers [ErrClosed].
type Queue interface {
	// Schedule stores the messages. A nil outcome means stored as durably as
	// the traits say.
	//
	// It is idempotent by id: while a message of that id is scheduled, in
	// flight or dead, the first one stays as it is and the outcome is
	// [ErrDuplicate], unless [Traits.KeepsDuplicates]; its text may say that the first is in flight. A store at its limit
	// answers [ErrFull] and keeps nothing of that message.
	//
	// A stored message with UniqueFor opens a window, rounded up to the resolution: until it ends,
	// every push of that id answers [ErrDuplicate], with UniqueFor or without, whatever has become of the
	// message. A push that is refused opens no window and lengthens none.
	//
	// The backend copies Body and Headers before it returns. It leaves the messages as they
	// are, but for the ids where [Traits.StoreMakesIDs].
	Schedule(ctx context.Context, ms []Message) []error

	// Receive hands out at least one and at most limit due messages, each under a
	// lease of its own for that long, rounded up to the resolution, in order of (due,
	// push order) unless [Traits.Unordered]. It waits until one is due. It returns
	// messages or an error, never both.
	//
	// A message whose lease ended is due again, at its old place in the order.
	//
	// When ctx ends, or ended before, it returns ctx's error having taken
	// nothing. When Close is called it returns [ErrClosed] likewise.
	//
	// The caller owns what it gets: no Body or Headers is shared with the store
	// or with another delivery.
	Receive(ctx context.Context, limit int, lease time.Duration) ([]Delivery, error)

	// Ack deletes the messages: they are done. It is fenced, as are the next
	// three: a lease that has ended, was settled before or was never given gets
	// [ErrLeaseLost] and changes nothing. So the second of two acks fails. A lease
	// is settled through the handle that received it.
	Ack(ctx context.Context, ls []Lease) []error

	// Nack gives the messages back, each to be due after its own delay, and with new headers where it has NewHeaders: every later
	// hand-out and listing shows these. The backend copies them before it returns. When the outcome is an error, the headers are
	// the old ones, unless that error matches [ErrOutcomeUnknown]. A store at its limit may answer [ErrFull] to headers that are larger than
	// the old ones: the lease is still in force.
	Nack(ctx context.Context, rs []Return) []error

	// Extend makes the leases end the given time from now, sooner or later than
	// they would have, and returns their new ends. The ends of the failed ones are zero.
	Extend(ctx context.Context, ls []Lease, lease time.Duration) ([]time.Time, []error)

	// Dead takes the messages out of circulation and keeps them as dead letters
	// with the reason.
	Dead(ctx context.Context, bs []Burial) []error

	// Close releases this handle and wakes its waiting Receives. Messages stay
	// in the store; leases that this handle holds end in their own time. No
	// goroutine of the handle runs once it has returned, but for what waits for a store that does not
	// reply: for that, Close waits for a bounded time. A second Close does nothing.
	Close() error
}

// Canceler is a [Queue] that can take a message back before it is handed out.
type Canceler interface {
	// Cancel deletes scheduled messages. A nil outcome means that the message
	// will never be handed out. One in flight answers [ErrInFlight]; one that is
	// not there, was settled or is dead answers [ErrNotFound].
	Cancel(ctx context.Context, ids []string) []error
}

// Rescheduler is a [Queue] that can move a scheduled message's due time.
type Rescheduler interface {
	// Reschedule moves scheduled messages, sooner or later, keeping body,
	// headers, attempts and push order. Errors are those of Cancel.
	Reschedule(ctx context.Context, ms []Move) []error
}

// Inspector is a [Queue] that can count its messages.
type Inspector interface {
	// Stats counts the messages of the whole queue, those of other processes
	// included.
	Stats(ctx context.Context) (Stats, error)
}

// DeadLetters is a [Queue] whose dead letters can be looked at and brought back.
type DeadLetters interface {
	// ListDead returns up to limit dead letters, oldest death first, from the
	// cursor on: "" starts, and a returned cursor of "" says that there are no
	// more. A page may be short, or empty, before that, as where letters are large. Letters that come or go meanwhile do not make it
	// skip the others.
	ListDead(ctx context.Context, cursor string, limit int) (ls []DeadLetter, next string, err error)

	// Redrive schedules dead letters again, due at once, whole, with attempts
	// counted from zero. An id that is not dead answers [ErrNotFound].
	Redrive(ctx context.Context, ids []string) []error

	// DeleteDead deletes dead letters. An id that is not dead answers [ErrNotFound].
	DeleteDead(ctx context.Context, ids []string) []error
}

// DeadIDLister is a [DeadLetters] that can list dead letters without their contents. It is optional: who redrives all of them uses it
// where it is there.
type DeadIDLister interface {
	// ListDeadIDs is ListDead, but for the contents.
	ListDeadIDs(ctx context.Context, cursor string, limit int) (ids []string, next string, err error)
}
