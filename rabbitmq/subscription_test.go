package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

// subscriptions returns the number of the test's queue.
func subscriptions(t *testing.T, ch *amqp.Channel) int {
	t.Helper()
	return consumers(t, ch, queueOf(t))
}

// consumers returns how many subscriptions a queue has.
func consumers(t *testing.T, ch *amqp.Channel, queue string) int {
	t.Helper()
	return look(t, ch, "delayq.v1.q."+queue).Consumers
}

// consume opens the test's queue and consumes until stop is called. It returns once the broker has
// its subscription.
func consume(t *testing.T, url string, ch *amqp.Channel, handler delayq.Handler) (q delayq.Queue, stop func()) {
	t.Helper()
	b := newBackend(t, url)
	q, err := newQueue(t, b, queueOf(t))
	must(t, err)
	await(t, "the end of other subscriptions", func() bool { return subscriptions(t, ch) == 0 })
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- q.Consume(ctx, handler, delayq.Workers(32)) }()
	await(t, "a subscription", func() bool { return subscriptions(t, ch) > 0 })
	return q, func() { cancel(); must(t, <-over) }
}

func refuse(context.Context, *delayq.Delivery) error { return errors.New("nothing was pushed") }

// TestSubscriptionEnds ends the waits for messages in each way. That ends the handle's
// subscriptions.
func TestSubscriptionEnds(t *testing.T) {
	for what, end := range map[string]func(t *testing.T, url string, ch *amqp.Channel){
		"Receive": func(t *testing.T, url string, ch *amqp.Channel) {
			q := open(t, url)
			waitOn(t.Context(), t, ch, queueOf(t), []backend.Queue{q})()
		},
		"Consume": func(t *testing.T, url string, ch *amqp.Channel) {
			_, stop := consume(t, url, ch, refuse)
			stop()
		},
		"Pause": func(t *testing.T, url string, ch *amqp.Channel) {
			q, stop := consume(t, url, ch, refuse)
			t.Cleanup(stop)
			q.Pause()
			await(t, "the end of the subscription", func() bool { return subscriptions(t, ch) == 0 })
			q.Resume()
			await(t, "a subscription", func() bool { return subscriptions(t, ch) > 0 })
			q.Pause()
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			url := shared(t)
			open(t, url)
			ch := channel(t, url)
			end(t, url, ch)
			await(t, "the end of the subscription", func() bool { return subscriptions(t, ch) == 0 })
			await(t, "the end of the handle's fillers", func() bool { return ready(t, ch, ownQueue(t)) == 0 })
		})
	}
}

// TestHandlesThatStopTakeNothing has one handle wait while another stops, again and again. Each
// message comes to the waiting handle, as attempt 1 unless the broker stood still. The test logs how
// late messages are with a stopped handle, and without.
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
	t.Logf("while a Consume is paused: p50 %v", lateness(ctx, t, q, "paused", n))
}

// withoutFillers is how long a broker takes no messages until a subscription ends without fillers.
// That may count an attempt (docs/rabbitmq.md).
const withoutFillers = 2 * time.Second

// lateness pushes messages one by one and returns by how much the median comes late.
func lateness(ctx context.Context, t *testing.T, q backend.Queue, prefix string, n int) time.Duration {
	t.Helper()
	var late []time.Duration
	last := time.Now() // when a Receive last waited
	for i := range n {
		pushed := time.Now()
		id := fmt.Sprint(prefix, i)
		must(t, q.Schedule(ctx, message(id, 0))...)
		d := receiveOne(ctx, t, q, id)
		late = append(late, time.Since(pushed))
		if pause := time.Since(last); d.Attempt != 1 && pause < withoutFillers {
			t.Errorf("message %s came with attempt %d, %v after the one before", d.ID, d.Attempt, pause)
		}
		last = time.Now()
		ack(ctx, t, q, d)
	}
	slices.Sort(late)
	return late[n/2]
}

// TestSubscriptionEndsWithWorkers has a worker stop while no Receive waits. The subscriptions end
// soon too.
func TestSubscriptionEndsWithWorkers(t *testing.T) {
	t.Parallel()
	ctx := deadline(t, patience)
	url := shared(t)
	q := open(t, url)
	ch := channel(t, url)
	must(t, q.Schedule(ctx, batch("m", 32, 0))...)
	takeAll(ctx, t, q, 32, func(backend.Delivery) {})
	await(t, "the end of the subscriptions", func() bool { return subscriptions(t, ch) == 0 })
	await(t, "the empty queue", func() bool { return ready(t, ch, ownQueue(t)) == 0 })
}
