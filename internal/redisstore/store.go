package redisstore

import (
	"errors"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
)

var (
	errFull   = backend.ErrFull
	errClosed = backend.ErrClosed

	// errUnknown is for a reply that was lost where the second try cannot tell whether there was a first.
	errUnknown = errors.New("outcome unknown: the reply was lost")
)

// Resolution is that of due times and leases: scores are whole milliseconds.
const Resolution = time.Millisecond

// Store is one queue's messages. It is safe for concurrent use; every method is one script or, for
// large batches, a few.
type Store struct {
	client redis.UniversalClient
	keys   keys
	clock  clockwork.Clock // nil for the server's own

	triggers bool // a key for each message that expires when it is due
}

// New returns the store of a queue. A clock replaces the server's own.
func New(c Config, queue string, clock clockwork.Clock) *Store {
	return &Store{client: c.Client, keys: newKeys(c.Prefix, queue), clock: clock, triggers: c.Triggers}
}
