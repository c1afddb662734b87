// Package broken holds backends with one fault each, of the kinds that delay queues have been
// seen to have. They test the conformance suite: the check that is named for the broken rule must
// catch each.
package broken

import (
	"context"
	"slices"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/backend/admin"
)

// Fault is one way to be broken.
type Fault struct {
	Name string // what the backend does wrong
	Rule string // the check that must catch it

	lists  func([]string, error) ([]string, error) // replaces the list of queues; nil where that is sound
	breaks func(*queue)                            // replaces functions of the queue; nil where the queue is sound
	lacks  []backend.Feature                       // declared lacking, with those that the backend lacks
}

// Wrap returns a backend that is b but for the fault. b must support every feature that has a
// method.
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
	sound, err := b.Backend.Open(ctx, name, o)
	if err != nil || b.fault.breaks == nil {
		return sound, err
	}
	q := &queue{backend: b.Backend, name: name, options: o}
	q.use(sound)
	b.fault.breaks(q)
	return q, nil
}

// Queues is as in admin.Lister.
func (b *faulty) Queues(ctx context.Context) ([]string, error) {
	l, ok := b.Backend.(admin.Lister)
	if !ok {
		return nil, backend.ErrUnsupported
	}
	names, err := l.Queues(ctx)
	if b.fault.lists != nil {
		return b.fault.lists(names, err)
	}
	return names, err
}

// Unwrap returns the sound backend, for tests that look into its store.
func (b *faulty) Unwrap() backend.Backend { return b.Backend }

// Faults returns all of them.
func Faults() []Fault {
	return slices.Concat(raceFaults, timeFaults, contentFaults, headerFaults, lossFaults, leaseFaults, stateFaults,
		wakeFaults, uniqueFaults, replaceFaults, replaceInFlightFaults, lookFaults, getFaults, pauseFaults, trimFaults, limitFaults, batchFaults, pageFaults, manyFaults, transactionFaults, lackingFaults)
}
