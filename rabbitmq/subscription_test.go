package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

// subscriptions is how many the test's queue has.
func subscriptions(t *testing.T, ch *amqp.Channel) int {
	t.Helper()
	return consumers(t, ch, queueOf(t))
}

// consumers is how many subscriptions a queue has.
func consumers(t *testing.T, ch *amqp.Channel, queue string) int {
	t.Helper()
	q, err := ch.QueueDeclarePassive("delayq.v1.q."+queue, true, false, false, false, nil)
	must(t, err)
	return q.Consumers
}

// consume opens the test's queue, consumes until stop is called, and returns once the broker has a
// subscription of its own.
func consume(t *testing.T, url string, ch *amqp.Channel, handler delayq.Handler) (q delayq.Queue, stop func()) {
	t.Helper()
	b := newBackend(t, url)
	q, err := delayq.New(t.Context(), queueOf(t), delayq.WithBackend(b), delayq.WithLogger(slog.New(slog.DiscardHandler)))
	must(t, err)
	await(t, "the end of other subscriptions", func() bool { return subscriptions(t, ch) == 0 })
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- q.Consume(ctx, handler, delayq.Workers(32)) }()
	await(t, "a subscription", func() bool { return subscriptions(t, ch) > 0 })
	return q, func() { cancel(); must(t, <-over) }
}

func refuse(context.Context, *delayq.Delivery) error { return errors.New("nothing was pushed") }

// TestSubscriptionEndsWithReceive ends the contexts of waiting Receives. That ends the handle's
// subscriptions.
func TestSubscriptionEndsWithReceive(t *testing.T) {
	t.Parallel()
	url := shared(t)
	q := open(t, url)
	ch := channel(t, url)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { _, err := q.Receive(ctx, 32, time.Minute); over <- err }()
	await(t, "a subscription", func() bool { return subscriptions(t, ch) > 0 })
	cancel()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Errorf("Receive returned %v", err)
	}
	await(t, "the end of the subscription", func() bool { return subscriptions(t, ch) == 0 })
	if n := ready(t, ch, ownQueue(t)); n != 0 {
		t.Errorf("%d messages are left in the queue, and none was pushed", n)
	}
}

func TestSubscriptionEndsWithConsume(t *testing.T) {
	t.Parallel()
	url := shared(t)
	open(t, url)
	ch := channel(t, url)
	_, stop := consume(t, url, ch, refuse)
	stop()
	await(t, "the end of the subscription", func() bool { return subscriptions(t, ch) == 0 })
}

func TestSubscriptionEndsWithPause(t *testing.T) {
	t.Parallel()
	url := shared(t)
	open(t, url)
	ch := channel(t, url)
	q, stop := consume(t, url, ch, refuse)
	defer stop()
	q.Pause()
	await(t, "the end of the subscription", func() bool { return subscriptions(t, ch) == 0 })
	q.Resume()
	await(t, "a subscription", func() bool { return subscriptions(t, ch) > 0 })
}

// TestHandlesThatStopTakeNothing has one handle wait while another stops, again and again. Each
// message comes to the one that waits, as attempt 1. The test logs how late messages are beside a
// handle that has stopped, and beside none.
func TestHandlesThatStopTakeNothing(t *testing.T) {
	t.Parallel()
	const n = 200
	ctx := deadline(t, patience)
	url := shared(t)
	q := open(t, url)
	ch := channel(t, url)
	t.Logf("alone: p50 %v", lateness(ctx, t, q, "alone", n))
	_, stop := consume(t, url, ch, refuse)
	stop()
	t.Logf("after a Consume that has returned: p50 %v", lateness(ctx, t, q, "returned", n))
	paused, stop := consume(t, url, ch, refuse)
	defer stop()
	paused.Pause()
	await(t, "the end of the subscription", func() bool { return subscriptions(t, ch) <= 1 })
	t.Logf("beside a Consume that is paused: p50 %v", lateness(ctx, t, q, "paused", n))
}

// lateness pushes messages one by one and returns by how much the median comes late.
func lateness(ctx context.Context, t *testing.T, q backend.Queue, prefix string, n int) time.Duration {
	t.Helper()
	var late []time.Duration
	for i := range n {
		pushed := time.Now()
		must(t, q.Schedule(ctx, message(fmt.Sprint(prefix, i), 0))...)
		ds, err := q.Receive(ctx, 1, time.Minute)
		must(t, err)
		late = append(late, time.Since(pushed))
		if ds[0].Attempt != 1 {
			t.Errorf("message %s came with attempt %d", ds[0].ID, ds[0].Attempt)
		}
		ack(ctx, t, q, ds...)
	}
	slices.Sort(late)
	return late[n/2]
}

// TestSubscriptionEndsWithWorkers has a worker stop while no Receive waits. The subscriptions end
// soon all the same.
func TestSubscriptionEndsWithWorkers(t *testing.T) {
	t.Parallel()
	ctx := deadline(t, patience)
	url := shared(t)
	q := open(t, url)
	ch := channel(t, url)
	must(t, q.Schedule(ctx, batch("m", 32, 0))...)
	for got := 0; got < 32; {
		ds, err := q.Receive(ctx, 32, time.Minute)
		must(t, err)
		got += len(ds)
		ack(ctx, t, q, ds...)
	}
	await(t, "the end of the subscriptions", func() bool { return subscriptions(t, ch) == 0 })
	if n := ready(t, ch, ownQueue(t)); n != 0 {
		t.Errorf("%d messages are left in the queue", n)
	}
}
