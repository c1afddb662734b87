package demo

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/cmd/delayq/internal/human"
)

// deadWorker kills a worker for good: a goroutine that ends without a word. A killed process
// would take a store in memory with it; to the store both are a lease that nobody renews.
var deadWorker = scene{
	title: "A worker dies with a message in its hands, and another gets it",
	scale: 1,
	play:  playDeadWorker,
}

const (
	shipmentDue = 200 * time.Millisecond
	doomedLease = time.Second
)

func playDeadWorker(ctx context.Context, s *stage) (err error) {
	id := s.tag + "shipment"
	lease := s.real(doomedLease)
	s.note(calm, id, fmt.Sprintf("pushed, due in %v", shipmentDue))
	if err := s.push(ctx, id, "print the label", shipmentDue); err != nil {
		return err
	}
	q, err := s.openQueue(ctx, delayq.WithLease(lease))
	if err != nil {
		return err
	}
	// After the rescue, since some stores give back at once what a closed handle held.
	defer func() { err = errors.Join(err, q.Close()) }()
	if err := s.doom(ctx, q, id, lease); err != nil {
		return err
	}
	rescue := func(d *delayq.Delivery, name string, _ time.Duration) error {
		s.note(good, name, fmt.Sprintf("worker B gets it as attempt %d, and handles it", d.Attempt))
		return nil
	}
	return s.serve(ctx, s.attend(rescue), func(context.Context) error { return nil })
}

// doom runs a worker that takes the message and dies.
func (s *stage) doom(ctx context.Context, q delayq.Queue, id string, lease time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, s.real(shipmentDue)+s.Patience)
	defer cancel()
	died := make(chan error, 1)
	go func() {
		var err error
		defer func() { died <- err }()
		err = s.grab(ctx, q, id, lease)
		runtime.Goexit()
	}()
	err := <-died
	if errors.Is(err, context.DeadlineExceeded) {
		return nil // the summary will call the message lost
	}
	return err
}

// grab takes the message and settles nothing, nor what comes before it: messages of earlier scenes
// that are later than those scenes had patience for.
func (s *stage) grab(ctx context.Context, q delayq.Queue, id string, lease time.Duration) error {
	for {
		d, err := q.Receive(ctx)
		if err != nil {
			return err
		}
		name, got := s.take(d)
		if !got.known {
			continue // after its lease a worker gives it back
		}
		s.ledger.died(name, lease)
		s.note(trouble, name, fmt.Sprintf("worker A takes it as attempt %d and dies: a goroutine that never settles it", d.Attempt))
		s.note(calm, name, fmt.Sprintf("nobody renews its lease of %s", human.Brief(doomedLease)))
		if name == id {
			return nil
		}
	}
}
