package admin

import "context"

// Lister is a [backend.Backend] that can list its queues.
type Lister interface {
	// Queues returns the names of the queues that have messages or had some lately, in any process,
	// sorted. One that is merely open may be among them. It opens no queue. The list is bounded: of
	// more queues than the store lists, those that were opened last are in it. It returns
	// [backend.ErrUnsupported] where the store cannot list queues as it is set up.
	Queues(ctx context.Context) ([]string, error)
}
