package admin

import "context"

// Remover is a [backend.Backend] that can take a queue out of its store.
type Remover interface {
	// Remove deletes a queue, with all that is in it. Nobody else may have it open. A queue that is
	// not there is no error.
	Remove(ctx context.Context, queue string) error

	// Remains names what the store holds of messages in some queues: keys, or counts. There is
	// nothing of a queue that was never used, that was removed, or whose messages are all done. It
	// may walk over the whole store.
	Remains(ctx context.Context, queues ...string) ([]string, error)
}
