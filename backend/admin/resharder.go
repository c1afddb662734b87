package admin

import "context"

// Resharder is a [backend.Backend] that can split a queue into shards, which lie on several servers.
type Resharder interface {
	// Reshard changes the number of shards of a queue while programs use it. Messages with new ids go
	// to the new shards. Those that are there stay in the old ones, which end with their last messages.
	// It returns a [backend.InvalidError] for a number that a queue cannot have.
	Reshard(ctx context.Context, queue string, n int) error
}
