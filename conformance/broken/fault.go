package broken

import (
	"context"

	"github.com/delayq/delayq/backend"
)

// Fault is one way to be broken.
type Fault struct {
	Name string // what the backend does wrong
	Rule string // the check that must catch it

	wrap  func(*queue) backend.Queue // nil where the queue is sound
	lacks []backend.Feature          // declared, beside what the backend lacks
}

// Wrap returns a backend that is b but for the fault. b must support all that has a method.
func (f Fault) Wrap(b backend.Backend) backend.Backend { return &faulty{Backend: b, fault: f} }

type faulty struct {
	backend.Backend
	fault Fault
}

func (b *faulty) Traits() backend.Traits {
	t := b.Backend.Traits()
	t.Lacks = t.Lacks.With(b.fault.lacks...)
	return t
}

func (b *faulty) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	q, err := b.Backend.Open(ctx, name, o)
	if err != nil {
		return nil, err
	}
	if b.fault.wrap == nil {
		return q, nil
	}
	return b.fault.wrap(&queue{Queue: q, backend: b.Backend, name: name, options: o}), nil
}

// Unwrap returns the sound backend, for those who look into its store.
func (b *faulty) Unwrap() backend.Backend { return b.Backend }

// queue is what a fault is put around.
type queue struct {
	backend.Queue
	backend backend.Backend
	name    string
	options backend.Options
}

// Faults returns all of them.
func Faults() []Fault {
	var all []Fault
	for _, some := range [][]Fault{raceFaults, timeFaults, contentFaults, headerFaults, lossFaults, leaseFaults, stateFaults, wakeFaults, uniqueFaults, lookFaults, limitFaults, batchFaults, pageFaults, manyFaults, lackingFaults} {
		all = append(all, some...)
	}
	return all
}
