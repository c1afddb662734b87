package delayq

import (
	"cmp"
	"context"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/backend/admin"
	"github.com/delayq/delayq/internal/valid"
)

// Queues returns the names of the queues on a backend that have messages or had some lately,
// sorted, those of other processes included. A queue that is open and has none may be among them.
// It opens no queue.
//
// In memory these are the queues of the process. On Redis they are the queues that were opened
// under the backend's prefix: handles enter their names once an hour, and a name goes when its
// queue has no keys and was not open for a day. Of more than 10,000, the ones opened last are
// listed. Queues that only Java uses are not known. On RabbitMQ they are the namespace's queues, by
// the management API. Queues returns [ErrUnsupported] where a backend cannot list queues, as
// RabbitMQ without that API.
func Queues(ctx context.Context, b backend.Backend) ([]string, error) {
	if err := cmp.Or(valid.Given("backend", b, "one that lists queues, as zsetpoll.New returns"), valid.Context(ctx)); err != nil {
		return nil, opError("queues", "", "", err)
	}
	l, ok := b.(admin.Lister)
	if !ok {
		return nil, opError("queues", "", "", &backend.UnsupportedError{Backend: b.Traits().Name, Op: "queues"})
	}
	names, err := l.Queues(ctx)
	return names, opError("queues", "", "", err)
}
