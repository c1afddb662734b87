package conformance

import (
	"context"
	"time"

	"github.com/delayq/delayq/backend"
)

// Harness is the environment that a backend is judged in. Only New is needed. What the
// backend can do is not told here; it is read from the backend.
type Harness struct {
	// New returns an empty backend that nobody else uses. The cleanup, which may be nil, runs
	// after the suite has closed the backend.
	New func(ctx context.Context) (b backend.Backend, cleanup func(), err error)

	// Attach returns a second backend on the store of b, as another process would open it; the
	// suite closes it. Nil: b itself opens a second handle.
	Attach func(ctx context.Context, b backend.Backend) (backend.Backend, error)

	// Leftovers names what the store of b still holds: keys, queues, messages. It is asked when
	// every message has been settled. Nil: only Stats is asked.
	Leftovers func(ctx context.Context, b backend.Backend) ([]string, error)

	// Virtual runs the backend on a fake clock.
	Virtual bool

	// Tick is the unit of all delays and leases: a minute in virtual time, else 200 ms.
	Tick time.Duration

	// Slack is the lateness allowed in real time beyond what the traits declare: for the noise of
	// the machine, 500 ms by default. Virtual time has none.
	Slack time.Duration

	// Quiet is how long, in real time, the suite looks for a message that must not come: 5 ms in
	// virtual time, else 50 ms. Too short a time can hide a fault and never invent one.
	Quiet time.Duration

	// Patience is how long, in real time, the suite waits for what must come: 10 s by default.
	Patience time.Duration
}

func (h Harness) withDefaults() Harness {
	set(&h.Patience, 10*time.Second)
	set(&h.Slack, 500*time.Millisecond)
	if h.Virtual {
		set(&h.Tick, time.Minute)
		set(&h.Quiet, 5*time.Millisecond)
	} else {
		set(&h.Tick, 200*time.Millisecond)
		set(&h.Quiet, 50*time.Millisecond)
	}
	return h
}

func set(d *time.Duration, def time.Duration) {
	if *d == 0 {
		*d = def
	}
}
