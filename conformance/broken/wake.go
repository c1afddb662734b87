package broken

import (
	"context"
	"time"

	"github.com/delayq/delayq/backend"
)

var wakeFaults = []Fault{
	{Name: "misses a wake-up: sleeps until the head that it knew", Rule: "wake-up", breaks: sleepUntilKnownHead},
	{Name: "misses the push of another client", Rule: "wake-up-elsewhere", breaks: sleepUntilKnownHead},
	{Name: "misses a push on an empty queue", Rule: "wake-up-at-once", breaks: lookOnce},
	{Name: "misses a nack", Rule: "wake-up-by-nack", breaks: lookOnce},
	{Name: "misses a reschedule", Rule: "wake-up-by-reschedule", breaks: sleepUntilKnownHead},
	{Name: "misses a replacement", Rule: "wake-up-by-replace", breaks: sleepUntilKnownHead},
	{Name: "misses a commit", Rule: "wake-up-by-commit", breaks: sleepUntilKnownHead},
	{Name: "wakes one worker for many messages", Rule: "wake-up-of-many", breaks: wakeOne},
	{Name: "gives a wake-up to a worker that is leaving", Rule: "wake-up-outlives-leavers", breaks: wakeOne},
}

// sleepUntilKnownHead has a Receive sleep until the head that it saw at first is due.
func sleepUntilKnownHead(q *queue) {
	q.receive = func(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
		for {
			if ds, err := q.now(limit, lease); err == nil || ctx.Err() != nil {
				return ds, err
			}
			s, err := q.Queue.Stats(ctx)
			if err != nil {
				return nil, err
			}
			if s.HeadDue.IsZero() {
				return q.Queue.Receive(ctx, limit, lease)
			}
			timer := q.clock().NewTimer(s.HeadDue.Sub(q.clock().Now()))
			select {
			case <-timer.Chan():
			case <-ctx.Done():
				timer.Stop()
				return nil, ctx.Err()
			}
		}
	}
}

func lookOnce(q *queue) {
	q.receive = func(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
		if ds, err := q.now(limit, lease); err == nil || ctx.Err() != nil {
			return ds, err
		}
		return forever(ctx)
	}
}

// wakeByAck has a Receive that waits look again after each ack alone.
func wakeByAck(q *queue) {
	acks := &q.shared().extra
	q.ack = func(ctx context.Context, ls []backend.Lease) []error {
		defer acks.Add(1)
		return q.Queue.Ack(ctx, ls)
	}
	q.receive = func(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
		for {
			seen := acks.Load()
			if ds, err := q.now(limit, lease); err == nil {
				return ds, nil
			}
			for acks.Load() == seen {
				select {
				case <-ctx.Done():
					return nil, ctx.Err()
				case <-time.After(time.Millisecond):
				}
			}
		}
	}
}

// wakeOne lets one worker of a handle wait for the store. The others wait for a turn that this one
// does not pass on when it leaves.
func wakeOne(q *queue) {
	turn := make(chan struct{}, 1)
	turn <- struct{}{}
	q.receive = func(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
		select {
		case <-turn:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return q.Queue.Receive(ctx, limit, lease)
	}
}
