// Package background runs the loops of a queue until it closes, those of package schedule too. What
// it gives these is not part of delayq.Queue, so that the fakes of an application need not have it.
package background

import (
	"context"
	"log/slog"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
)

// A Host is a queue that runs loops.
type Host struct {
	Name   string
	Traits backend.Traits
	Clock  clockwork.Clock
	Log    *slog.Logger

	// Run is [Loops.Run].
	Run func(ctx context.Context, loop func(context.Context) error) error
}

// HostOf returns the Host of a queue. There is none unless delayq.New or delayq.Open returned the
// queue: one that wraps it, or a fake, has no Host.
func HostOf(q any) (h Host, ok bool) {
	b, ok := q.(interface{ Background() Host })
	if !ok {
		return Host{}, false
	}
	return b.Background(), true
}
