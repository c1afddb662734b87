package bench

import (
	"context"
	"testing"

	"github.com/delayq/delayq"
)

// consume records in t the messages of 32 workers. It returns a function that waits for the last
// message and stops them.
func consume(b *testing.B, q delayq.Queue, t *tally) (wait func()) {
	const workers = 32
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- q.Consume(ctx, t.handle, delayq.Workers(workers)) }()
	return func() {
		b.Helper()
		t.wait(b)
		stop()
		must(b, <-ended)
		t.mustHold(b)
		mustHold(b, q, 0)
	}
}
