package chaos

import (
	"context"
	"time"

	"github.com/delayq/delayq/backend"
)

// SecondMix is the mix on the second queue: few messages, so that its one worker mostly waits.
func SecondMix() Mix {
	return Mix{
		Nack: 0.04, Untouched: 0.02, Late: 0.03, Cancel: 0.02, Reschedule: 0.04,
		Delay: 1500 * time.Millisecond, Leases: []time.Duration{secondLease}, Batches: []int{1, 1, 1, 4},
	}
}

// SecondWorker is the one worker of the second queue. It receives one message at a time, and waits
// long for it. Sometimes it keeps a message under a lease that it extends again and again, while it
// goes on receiving others.
func SecondWorker(e *Env, proc int) Run {
	return func(ctx context.Context, b backend.Backend) {
		w := &secondWorker{worker: worker{client: newClient(e, proc, b)}}
		defer w.close()
		waiting, stop := context.WithCancel(ctx)
		defer stop()
		go func() {
			defer stop()
			for waiting.Err() == nil && !e.Stopping.Load() {
				w.rest(waiting, 10*shortPause)
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
	kept  []delivery // at most one
	until time.Time
}

// A message is kept for maxKept, under a lease of secondLease that is extended every extendEvery.
const (
	secondWait  = 12 * time.Second
	maxKept     = 4 * time.Second
	secondLease = 3 * time.Second
	extendEvery = time.Second
)

// round receives a message until waiting ends, with the test run, and settles it even then.
func (w *secondWorker) round(ctx, waiting context.Context) {
	w.wait = secondWait
	switch {
	case w.kept == nil:
	case w.Draining.Load() || time.Now().After(w.until):
		w.ack(ctx, w.kept)
		w.kept = nil
	default:
		w.extend(ctx, w.kept, secondLease)
		w.wait = extendEvery
	}
	got := w.receive(waiting, 1, secondLease)
	if w.kept == nil && len(got) > 0 && !w.Draining.Load() && w.chance(w.Mix.Late) {
		w.kept, w.until = got, time.Now().Add(maxKept)
		return
	}
	switch w.choose() {
	case nack:
		w.nack(ctx, got, false)
	case untouched:
		w.nack(ctx, got, true)
	default:
		w.ack(ctx, got)
	}
}
