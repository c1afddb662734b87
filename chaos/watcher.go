package chaos

import (
	"context"
	"time"

	"github.com/delayq/delayq/backend"
)

// AsideMix is what happens on the queue beside: little, so that its one taker mostly waits.
func AsideMix() Mix {
	return Mix{
		Nack: 0.04, Untouched: 0.02, Late: 0.03, Cancel: 0.02, Move: 0.04,
		Delay: 1500 * time.Millisecond, Leases: []time.Duration{sitLease}, Batches: []int{1, 1, 1, 4},
	}
}

// Watcher is the one taker of the queue beside. It takes one message at a time, and waits long for it. Sometimes it sits on a message: it keeps
// that under a lease that it extends again and again, while it goes on taking others.
func Watcher(s *Stage, proc int) func(context.Context, backend.Backend) {
	return func(ctx context.Context, b backend.Backend) {
		w := &watcher{taker: taker{actor: newActor(s, proc, b), patience: watchAtMost}}
		defer w.close()
		waiting, stop := context.WithCancel(ctx)
		defer stop()
		go func() {
			defer stop()
			for waiting.Err() == nil && !s.Stopping.Load() {
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

type watcher struct {
	taker
	sat   []held // at most one
	until time.Time
}

// A message is sat on for sitAtMost at most, under a lease of sitLease that is extended every sitEach.
const (
	watchAtMost = 12 * time.Second
	sitAtMost   = 4 * time.Second
	sitLease    = 3 * time.Second
	sitEach     = time.Second
)

// round takes a message. waiting ends when everybody is to leave; what was taken is settled all the same.
func (w *watcher) round(ctx, waiting context.Context) {
	w.patience = watchAtMost
	if w.sit(ctx) {
		w.patience = sitEach
	}
	got := w.take(waiting, 1, sitLease)
	if w.sat == nil && len(got) > 0 && !w.Draining.Load() && w.chance(w.Mix.Late) {
		w.sat, w.until = got, time.Now().Add(sitAtMost)
		return
	}
	for _, h := range got {
		w.settleOne(ctx, []held{h})
	}
}

func (w *watcher) settleOne(ctx context.Context, h []held) {
	switch w.fate() {
	case Nack:
		w.nack(ctx, h, false)
	case Move: // stands for untouched
		w.nack(ctx, h, true)
	default:
		w.ack(ctx, h)
	}
}

// sit extends the lease of what is sat on, or ends that, and reports whether it goes on.
func (w *watcher) sit(ctx context.Context) bool {
	if w.sat == nil {
		return false
	}
	if w.Draining.Load() || time.Now().After(w.until) {
		w.ack(ctx, w.sat)
		w.sat = nil
		return false
	}
	w.extend(ctx, w.sat, sitLease)
	return true
}
