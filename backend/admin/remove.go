package admin

import "context"

// Remover is a [backend.Backend] that can take a queue out of its store.
type Remover interface {
	// Remove deletes a queue with all its data. No other process may have it open. A queue that
	// does not exist is no error.
	Remove(ctx context.Context, queue string) error

	// Remains lists the data of some queues in the store: keys, or counts. There is none for a
	// queue that was never used, that was removed, or whose messages are all done. It may walk over
	// the whole store.
	Remains(ctx context.Context, queues ...string) ([]string, error)
}
