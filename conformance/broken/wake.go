package broken

import (
	"context"
	"time"

	"github.com/delayq/delayq/backend"
)

var wakeFaults = []Fault{
	{Name: "forgets a wake-up: sleeps until the head that it knew", Rule: "wake-up", wrap: func(q *queue) backend.Queue { return &dreamer{q} }},
	{Name: "does not hear what another client pushes", Rule: "wake-up-elsewhere", wrap: func(q *queue) backend.Queue { return &dreamer{q} }},
	{Name: "does not hear a push on an empty queue", Rule: "wake-up-at-once", wrap: func(q *queue) backend.Queue { return &oblivious{q} }},
	{Name: "does not hear a nack", Rule: "wake-up-by-nack", wrap: func(q *queue) backend.Queue { return &oblivious{q} }},
	{Name: "does not hear a reschedule", Rule: "wake-up-by-reschedule", wrap: func(q *queue) backend.Queue { return &dreamer{q} }},
	{Name: "wakes one worker for many messages", Rule: "wake-up-of-many", wrap: func(q *queue) backend.Queue { return newSoleWaker(q) }},
	{Name: "gives a wake-up to a worker that is leaving", Rule: "wake-up-outlives-leavers", wrap: func(q *queue) backend.Queue { return newSoleWaker(q) }},
}

// dreamer sleeps until the head that it saw when it fell asleep.
type dreamer struct{ *queue }

func (q *dreamer) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	for {
		if ds, err := q.now(limit, lease); err == nil || ctx.Err() != nil {
			return ds, err
		}
		s, err := q.Stats(ctx)
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

// oblivious looks once.
type oblivious struct{ *queue }

func (q *oblivious) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	if ds, err := q.now(limit, lease); err == nil || ctx.Err() != nil {
		return ds, err
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// soleWaker lets one worker wait for the store; the others wait for a turn that nobody passes on
// when that one leaves.
type soleWaker struct {
	*queue
	turn chan struct{}
}

func newSoleWaker(q *queue) *soleWaker {
	s := &soleWaker{queue: q, turn: make(chan struct{}, 1)}
	s.turn <- struct{}{}
	return s
}

func (q *soleWaker) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	select {
	case <-q.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return q.Queue.Receive(ctx, limit, lease)
}
