package broken

import (
	"context"
	"time"

	"github.com/delayq/delayq/backend"
)

var wakeFaults = []Fault{
	{"forgets a wake-up: sleeps until the head that it knew", "wake-up", func(q *queue) backend.Queue { return &dreamer{q} }},
	{"does not hear what another client pushes", "wake-up-elsewhere", func(q *queue) backend.Queue { return &dreamer{q} }},
	{"does not hear a push on an empty queue", "wake-up-at-once", func(q *queue) backend.Queue { return &oblivious{q} }},
	{"does not hear a nack", "wake-up-by-nack", func(q *queue) backend.Queue { return &oblivious{q} }},
	{"does not hear a reschedule", "wake-up-by-reschedule", func(q *queue) backend.Queue { return &dreamer{q} }},
	{"wakes one worker for many messages", "wake-up-of-many", func(q *queue) backend.Queue { return newSoleWaker(q) }},
	{"gives a wake-up to a worker that is leaving", "wake-up-outlives-leavers", func(q *queue) backend.Queue { return newSoleWaker(q) }},
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
			return q.whole.Receive(ctx, limit, lease)
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
	return q.whole.Receive(ctx, limit, lease)
}
