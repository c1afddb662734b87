package broken

import (
	"context"

	"github.com/delayq/delayq/backend"
)

// Fault is one way to be broken.
type Fault struct {
	Name string // what the backend does wrong
	Rule string // the check that must catch it

	wrap func(*queue) backend.Queue
}

// Wrap returns a backend that is b but for the fault. The queues of b must have every optional
// interface.
func (f Fault) Wrap(b backend.Backend) backend.Backend { return &faulty{Backend: b, fault: f} }

type faulty struct {
	backend.Backend
	fault Fault
}

func (b *faulty) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	q, err := b.Backend.Open(ctx, name, o)
	if err != nil {
		return nil, err
	}
	return b.fault.wrap(&queue{whole: q.(whole), backend: b.Backend, name: name, options: o}), nil
}

// Unwrap returns the sound backend, for those who look into its store.
func (b *faulty) Unwrap() backend.Backend { return b.Backend }

// whole is a queue with every optional interface. A wrapper that embedded less would lose
// capabilities, and checks would be skipped instead of failing.
type whole interface {
	backend.Queue
	backend.Canceler
	backend.Rescheduler
	backend.Inspector
	backend.DeadLetters
	backend.Peeker
	backend.Purger
}

// queue is what a fault is put around.
type queue struct {
	whole
	backend backend.Backend
	name    string
	options backend.Options
}

// Faults returns all of them.
func Faults() []Fault {
	var all []Fault
	for _, some := range [][]Fault{raceFaults, timeFaults, contentFaults, headerFaults, lossFaults, leaseFaults, stateFaults, wakeFaults, uniqueFaults, lookFaults, limitFaults, batchFaults, pageFaults, manyFaults} {
		all = append(all, some...)
	}
	return all
}
