package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/rabbitmq"
)

const fillerHeader = "delayq-filler"

// publishFiller publishes a filler. If died is not empty, its headers say that a policy took it out
// of that queue.
func publishFiller(t *testing.T, conn *amqp.Connection, queue, died string) {
	t.Helper()
	headers := amqp.Table{fillerHeader: true}
	if died != "" {
		headers["x-death"] = []any{amqp.Table{"queue": died, "reason": "maxlen", "count": int64(1)}}
	}
	publish(t, conn, "", queue, amqp.Publishing{Headers: headers})
}

// TestFillersReachNoHandler has fillers in the queue, as from a killed process, and in
// undeliverable, as from policies. No handler sees them, and they disappear.
func TestFillersReachNoHandler(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	url, ctx, name := vhost(t), deadline(t, patience), ownQueue(t)
	q, ch, conn := open(t, url), channel(t, url), connection(t, url)
	for range 3 {
		publishFiller(t, conn, name, "")
		publishFiller(t, conn, undeliverable, name)
		publishFiller(t, conn, undeliverable, "")
	}
	must(t, q.Schedule(ctx, message("m", 0))...)
	ack(ctx, t, q, receiveOne(ctx, t, q, "m"))
	wantNoMessage(t, q, 200*time.Millisecond)
	await(t, "the end of fillers in the queue", func() bool { return ready(t, ch, name) == 0 })
	await(t, "the end of fillers in undeliverable", func() bool { return ready(t, ch, undeliverable) == 0 })
}

// TestLateFillersExpire has the broker take the fillers of a handle only after the handle gave up on
// them and ended its subscription, as a broker in an alarm does. They leave the queue.
func TestLateFillersExpire(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	server := testenv.RabbitMQ(t, testenv.PrivateRabbit())
	url, ctx, name := server.URL(), deadline(t, patience), ownQueue(t)
	q, ch := open(t, url, few), channel(t, url)
	leave := waitOn(ctx, t, ch, queueOf(t), []backend.Queue{q})
	server.SetMemoryAlarm(true)
	leave()
	await(t, "the end of the subscription", func() bool { return subscriptions(t, ch) == 0 })
	server.SetMemoryAlarm(false)
	await(t, "late fillers", func() bool { return ready(t, ch, name) > 0 })
	await(t, "the end of fillers in the queue", func() bool { return ready(t, ch, name) == 0 })
	await(t, "the end of fillers in undeliverable", func() bool { return ready(t, ch, undeliverable) == 0 })
}

// TestFillersMeetPolicies ends subscriptions to a queue that a policy bounds, with the room that
// docs/rabbitmq.md asks for. Each message comes once, as attempt 1, and none ends in undeliverable.
func TestFillersMeetPolicies(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	for _, overflow := range []string{"drop-head", "reject-publish"} {
		t.Run(overflow, func(t *testing.T) { fillersMeetPolicy(t, fmt.Sprintf(`{"max-length":1010,"overflow":%q}`, overflow)) })
	}
}

func fillersMeetPolicy(t *testing.T, definition string) {
	const handles, n = 3, 20
	server, vhost := sharedVhost(t)
	ctx := deadline(t, patience)
	b := newBackend(t, server.VhostURL(vhost), few)
	name, ch := queueOf(t), channel(t, server.VhostURL(vhost))
	log := new(logBuffer)
	worker := openLogging(t, b, name, log)
	policy(server, vhost, `^delayq\.v1\.q\.`, definition)
	var others []backend.Queue
	for range handles {
		others = append(others, openOn(t, b, name))
	}
	for i := range n {
		waitOn(ctx, t, ch, name, others)() // the next message comes while the subscriptions are filled
		must(t, worker.Schedule(ctx, message(fmt.Sprint(i), 0))...)
		d := receiveOne(ctx, t, worker, fmt.Sprint(i))
		if d.Attempt != 1 {
			t.Errorf("message %d came with attempt %d", i, d.Attempt)
		}
		ack(ctx, t, worker, d)
	}
	if n := ready(t, ch, undeliverable); n != 0 {
		t.Errorf("%d messages are in undeliverable", n)
	}
	if strings.Contains(log.String(), "refuses messages") {
		t.Errorf("the log blames the queue for fillers: %s", log)
	}
}

// waitOn has handles wait for messages. leave ends the waits.
func waitOn(ctx context.Context, t *testing.T, ch *amqp.Channel, name string, qs []backend.Queue) (leave func()) {
	t.Helper()
	waiting, cancel := context.WithCancel(ctx)
	await(t, "the end of subscriptions", func() bool { return consumers(t, ch, name) == 0 })
	left := make(chan error, len(qs))
	for _, q := range qs {
		go func() { _, err := q.Receive(waiting, 32, time.Minute); left <- err }()
	}
	await(t, "subscriptions", func() bool { return consumers(t, ch, name) == len(qs) })
	return func() {
		cancel()
		for range qs {
			if err := <-left; !errors.Is(err, context.Canceled) {
				t.Errorf("Receive returned %v", err)
			}
		}
	}
}

// TestFillersDeclareNothing deletes a queue while a handle fills its subscription. Nothing is
// pushed and no Receive waits, so the queue must stay deleted.
func TestFillersDeclareNothing(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	url := vhost(t)
	ctx := deadline(t, patience)
	ch := channel(t, url)
	for range 10 {
		b := rabbitmq.New(url)
		q := openOn(t, b, queueOf(t))
		waitOn(ctx, t, ch, queueOf(t), []backend.Queue{q})()
		deleteQueue(t, ch, ownQueue(t))
		must(t, b.Close())
		if _, err := ch.QueueDeclarePassive(ownQueue(t), true, false, false, false, nil); err == nil {
			t.Fatal("the queue is there again")
		}
		ch = channel(t, url)
	}
}
