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

	// Attach returns a second backend on the store of b, as another process would open it. The
	// cleanup is as that of New. Nil: b itself opens a second handle.
	Attach func(ctx context.Context, b backend.Backend) (second backend.Backend, cleanup func(), err error)

	// Leftovers names what the store of b still holds: keys, queues, messages. It is asked when
	// every message has been settled. Nil: only Stats is asked.
	Leftovers func(ctx context.Context, b backend.Backend) ([]string, error)

	// Limited returns a backend as New does, of which a queue is full with some hundred small messages: with LimitedTo messages, or
	// after any number of bytes where LimitedTo is 0. Nil: what a full queue does is not checked.
	Limited   func(ctx context.Context) (b backend.Backend, cleanup func(), err error)
	LimitedTo int

	// Shared names functions, as a stack shows them, whose goroutines belong to no backend: to a
	// client that New passes to all of them, say. They are not leaks.
	Shared []string

	// Prefix begins the names of all queues that the suite opens, so that it can run on a store that has others: "" by
	// default. Their names go on with "conformance." and the check's name, but for one that is Prefix and "x".
	Prefix string

	// Skew is how far the store's clock may differ from this machine's, in real time: 0 by default, which is no tolerance at
	// all. What is due at a time, rather than after a delay, may come that much earlier by this machine's clock. For as much lateness,
	// add to Slack.
	Skew time.Duration

	// Parallel makes [Run] run checks side by side, as many as the flag -parallel of go test
	// allows, after those that are [Check.Alone]. The functions of the harness are then called
	// concurrently.
	Parallel bool

	// Virtual runs the backend on a fake clock. In real time the store's clock has to agree with this
	// machine's but for what Skew and Slack allow.
	Virtual bool

	// Tick is the unit of all delays and leases: a minute in virtual time, else 200 ms.
	Tick time.Duration

	// Slack is the noise of the machine in real time, 1 s by default: the lateness allowed beyond
	// what the traits declare, and for how long the suite itself may be held up while a lease
	// runs. More of it costs little. Virtual time has none.
	Slack time.Duration

	// Quiet is how long, in real time, the suite looks for a message that must not come: 5 ms in
	// virtual time, else 50 ms. Too short a time can hide a fault and never invent one.
	Quiet time.Duration

	// Patience is how long, in real time, the suite waits for what must come: 10 s by default.
	Patience time.Duration
}

func (h Harness) withDefaults() Harness {
	set(&h.Patience, 10*time.Second)
	set(&h.Slack, time.Second)
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
