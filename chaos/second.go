package chaos

import (
	"context"
	"time"

	"github.com/delayq/delayq/backend"
)

// SecondMix is what happens on the second queue: little, so that its one worker mostly waits.
func SecondMix() Mix {
	return Mix{
		Nack: 0.04, Untouched: 0.02, Late: 0.03, Cancel: 0.02, Reschedule: 0.04,
		Delay: 1500 * time.Millisecond, Leases: []time.Duration{secondLease}, Batches: []int{1, 1, 1, 4},
	}
}

// SecondWorker is the one worker of the second queue. It receives one message at a time, and waits
// long for it. Sometimes it keeps a message under a lease that it extends again and again, while it
// goes on receiving others.
func SecondWorker(e *Env, proc int) func(context.Context, backend.Backend) {
	return func(ctx context.Context, b backend.Backend) {
		w := &secondWorker{worker: worker{client: newClient(e, proc, b), patience: secondPatience}}
		defer w.close()
		waiting, stop := context.WithCancel(ctx)
		defer stop()
		go func() {
			defer stop()
			for waiting.Err() == nil && !e.Stopping.Load() {
				w.rest(waiting, 10*breath)
			}
		}()
		for waiting.Err() == nil {
			if w.open(ctx); w.q != nil {
				w.round(ctx, waiting)
			}
		}
	}
}

type secondWorker struct {
	worker
	kept  []held // at most one
	until time.Time
}

// A message is kept for keepAtMost, under a lease of secondLease that is extended every extendEvery.
const (
	secondPatience = 12 * time.Second
	keepAtMost     = 4 * time.Second
	secondLease    = 3 * time.Second
	extendEvery    = time.Second
)

// round receives a message. waiting ends when the test run does; what was received is settled all the
// same.
func (w *secondWorker) round(ctx, waiting context.Context) {
	w.patience = secondPatience
	if w.keeps(ctx) {
		w.patience = extendEvery
	}
	got := w.receive(waiting, 1, secondLease)
	if w.kept == nil && len(got) > 0 && !w.Draining.Load() && w.chance(w.Mix.Late) {
		w.kept, w.until = got, time.Now().Add(keepAtMost)
		return
	}
	for _, h := range got {
		switch one := []held{h}; w.choose() {
		case nack:
			w.nack(ctx, one, false)
		case untouched:
			w.nack(ctx, one, true)
		default:
			w.ack(ctx, one)
		}
	}
}

// keeps extends the lease of the kept message, or acknowledges it, and reports whether it is still
// kept.
func (w *secondWorker) keeps(ctx context.Context) bool {
	if w.kept == nil {
		return false
	}
	if w.Draining.Load() || time.Now().After(w.until) {
		w.ack(ctx, w.kept)
		w.kept = nil
		return false
	}
	w.extend(ctx, w.kept, secondLease)
	return true
}
