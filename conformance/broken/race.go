package broken

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delayq/delayq/backend"
)

var raceFaults = []Fault{
	{Name: "loses a message when two batches meet", Rule: "batches-at-once", breaks: func(q *queue) {
		s := q.shared()
		q.schedule = func(ctx context.Context, ms []backend.Message) []error {
			defer s.pushing.Add(-1)
			others := s.pushing.Add(1) > 1
			if <-time.After(100 * time.Microsecond); others {
				ms = ms[:len(ms)-1]
			}
			q.Queue.Schedule(ctx, ms)
			return nil
		}
	}},
	{Name: "counts a message twice while it is settled", Rule: "clients-at-once", breaks: func(q *queue) {
		var settling atomic.Int64
		q.onStats(func(s *backend.Stats) { s.InFlight += settling.Load() })
		q.ack = func(ctx context.Context, ls []backend.Lease) []error {
			settling.Add(int64(len(ls)))
			<-time.After(100 * time.Microsecond)
			settling.Add(-int64(len(ls)))
			return q.Queue.Ack(ctx, ls)
		}
	}},
	{Name: "counts an attempt for a Receive that ends beside another", Rule: "wake-up-races", breaks: func(q *queue) {
		s := q.shared()
		q.receive = func(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
			s.waiting.Add(1)
			ds, err := q.Queue.Receive(ctx, limit, lease)
			if others := s.waiting.Add(-1); others > 0 && errors.Is(err, context.Canceled) {
				s.extra.Store(1)
			}
			for i := range ds {
				ds[i].Attempt += int(s.extra.Swap(0))
			}
			return ds, err
		}
	}},
	{Name: "keeps the wake-up of a handle that closes", Rule: "wake-up-races", breaks: keepTurnWhenClosed},
	{Name: "wakes one worker for a batch", Rule: "wake-up-of-batch", breaks: wakeOne},
	{Name: "misses that a lease is shortened", Rule: "wake-up-by-lease", breaks: missLeaseEnds},
	{Name: "sleeps until the head that it knew, for years", Rule: "wake-up-after-long", breaks: sleepUntilKnownHead},
	{Name: "leaves a goroutine when it is woken and closed at once", Rule: "close-race", breaks: func(q *queue) {
		var closing atomic.Bool
		q.onReceived(func(ds []backend.Delivery) {
			<-time.After(100 * time.Microsecond) // so that a Close at the same time has begun
			if len(ds) > 0 && closing.Load() {
				go func() { <-time.After(5 * time.Second) }()
			}
		})
		q.close = func() error {
			closing.Store(true)
			<-time.After(time.Millisecond)
			return q.Queue.Close()
		}
	}},
	{Name: "goes on receiving after Close has returned", Rule: "close-takes-nothing", breaks: func(q *queue) {
		closed := sync.OnceFunc(func() {
			go func() {
				<-time.After(100 * time.Millisecond)
				_ = q.Queue.Close()
			}()
		})
		q.close = func() error { closed(); return nil }
	}},
}

// keepTurnWhenClosed lets one worker wait for the store, the others for their turn. A handle that
// closes does not pass it on.
func keepTurnWhenClosed(q *queue) {
	s, closed := q.shared(), make(chan struct{})
	once := sync.OnceFunc(func() { close(closed) })
	q.receive = func(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
		select {
		case <-s.turn:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-closed:
			return nil, backend.ErrClosed
		}
		ds, err := q.Queue.Receive(ctx, limit, lease)
		if !errors.Is(err, backend.ErrClosed) {
			s.turn <- struct{}{}
		}
		return ds, err
	}
	q.close = func() error {
		once()
		return q.Queue.Close()
	}
}

// Unlocked returns a fault that no check can see: a count that Stats reads without its lock. The
// race detector catches it, in the check of its rule. It is not one of [Faults].
func Unlocked() Fault {
	return Fault{Name: "reads a count in Stats without its lock", Rule: "clients-at-once", breaks: func(q *queue) {
		var pushes int64
		q.onPush(func(*backend.Message) { pushes++ })
		q.onStats(func(s *backend.Stats) { s.Scheduled += min(pushes, 0) })
	}}
}
