package conformance

import (
	"cmp"
	"context"
	"time"

	"github.com/delayq/delayq/backend"
)

// Harness is the environment that a backend is tested in. Only New is needed. The features of the
// backend are read from its traits.
type Harness struct {
	// New returns an empty backend for one check. The cleanup, which may be nil, runs after the
	// suite has closed the backend.
	New func(ctx context.Context) (b backend.Backend, cleanup func(), err error)

	// Attach returns a second backend on the store of b, as another process would open it. The
	// cleanup is as that of New. Nil: b itself opens a second handle.
	Attach func(ctx context.Context, b backend.Backend) (second backend.Backend, cleanup func(), err error)

	// Leftovers names the keys, queues and messages that the store of b still holds. The suite
	// calls it when every message is settled. Nil: only Stats is checked.
	Leftovers func(ctx context.Context, b backend.Backend) ([]string, error)

	// Limited returns a backend as New does, whose queues are full with some hundred small
	// messages: with LimitedTo messages, or after any number of bytes where LimitedTo is 0. Nil:
	// full queues are not checked.
	Limited   func(ctx context.Context) (b backend.Backend, cleanup func(), err error)
	LimitedTo int

	// Begin begins a transaction on the store of b, of the kind that InTx takes. Nil: transactions
	// are not checked. BeginElsewhere begins one on another store of that kind, best with the same
	// tables; nil: that it is refused is not checked.
	Begin, BeginElsewhere func(ctx context.Context, b backend.Backend) (Transaction, error)

	// Shared names functions, as a stack shows them, whose goroutines are no leaks: those of a
	// client that New passes to all backends, for example.
	Shared []string

	// Prefix begins the names of all queues that the suite opens, so that it can run on a store
	// that has other queues: "" by default. "conformance." and the check's name follow; one name is
	// Prefix and "x".
	Prefix string

	// Skew is how far the store's clock may differ from this machine's, in real time: 0 by default.
	// A message with a due time, rather than a delay, may be handed out that much earlier by this
	// machine's clock. Add it to Slack to allow as much lateness.
	Skew time.Duration

	// Parallel makes [Run] run checks in parallel, as many as the flag -parallel of go test allows,
	// after those that are [Check.Alone]. The functions of the harness are then called
	// concurrently.
	Parallel bool

	// Virtual runs the backend on a fake clock. In real time the store's clock must agree with this
	// machine's, within Skew and Slack.
	Virtual bool

	// Tick is the unit of all delays and leases: a minute in virtual time, else 200 ms.
	Tick time.Duration

	// Slack is the noise of the machine in real time, 1 s by default: the lateness that is allowed
	// beyond the traits, and for how long the suite itself may be delayed during a lease. More of
	// it costs little. Virtual time has none.
	Slack time.Duration

	// Quiet is how long, in real time, the suite waits for a message that must not be handed out: 5
	// ms in virtual time, else 50 ms. Too short a time can hide a fault, and cannot report a false
	// one.
	Quiet time.Duration

	// Patience is how long, in real time, the suite waits for a message or a call that must come:
	// 10 s by default.
	Patience time.Duration
}

// Transaction is an open transaction. The suite calls one of Commit and Rollback, once; Rollback may
// follow a Commit, and does nothing then.
type Transaction struct {
	Tx               any // for InTx
	Commit, Rollback func() error
}

func (h Harness) withDefaults() Harness {
	h.Patience = cmp.Or(h.Patience, 10*time.Second)
	h.Slack = cmp.Or(h.Slack, time.Second)
	if h.Virtual {
		h.Tick = cmp.Or(h.Tick, time.Minute)
		h.Quiet = cmp.Or(h.Quiet, 5*time.Millisecond)
	} else {
		h.Tick = cmp.Or(h.Tick, 200*time.Millisecond)
		h.Quiet = cmp.Or(h.Quiet, 50*time.Millisecond)
	}
	return h
}
