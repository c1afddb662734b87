package backend

import (
	"context"
	"log/slog"

	"github.com/jonboulle/clockwork"
)

// Backend opens queues on one store: a process's memory, a Redis, a RabbitMQ.
// It is safe for concurrent use.
type Backend interface {
	// Open returns the queue of that name, made when it does not exist yet.
	// Opening one name twice gives two handles on the same queue, as two
	// processes would have. The name has passed the portable checks; a store
	// that reserves more characters returns an [InvalidError].
	Open(ctx context.Context, name string, o Options) (Queue, error)

	// Traits returns this store's promises. They never change.
	Traits() Traits

	// Close closes every open queue and releases what the backend itself opened; a client that the
	// user passed in stays open. Open after Close returns [ErrClosed]. A second Close does nothing.
	// It waits for calls that are under way for a bounded time; its error matches [ErrUnavailable]
	// where the store does not reply to them.
	Close() error
}

// Options are the settings that package delayq passes to every queue.
type Options struct {
	// Clock replaces the store's own clock. Nil means the store's own: TIME on Redis, the broker's
	// timers on RabbitMQ, the process's clock in memory. A backend that cannot run on another clock
	// returns [ErrUnsupported] from Open. With a clock given, a waiting Receive sleeps on that
	// clock and on no other. A fake clock jumps. So code that starts a timer reads the clock once
	// more after that, as [SleepUntil] does. Otherwise it sleeps through a jump that came just
	// before the start.
	Clock clockwork.Clock

	// Logger gets events that no method can return: a lost connection, a degraded mode. It is never
	// nil.
	Logger *slog.Logger

	// Refused is called when the store refuses messages of this queue that are due. They do not
	// come then, and may hold up others. A store calls it at most once a minute while that lasts.
	// It is safe for concurrent use, returns at once, and may be nil.
	Refused func()
}
