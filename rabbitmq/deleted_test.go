package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/rabbitmq"
)

// deletedDelay passes several levels: 0x1000, 0x2c0 and 0x30.
const deletedDelay = 0x12f0 * time.Millisecond

// partsOf lists the exchanges and queues of the default namespace on a broker.
func partsOf(t *testing.T, server *testenv.RabbitServer, vhost string) (exchanges, queues []string) {
	t.Helper()
	ours := func(names []string) []string {
		return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, "delayq.") })
	}
	return ours(strings.Fields(server.Ctl("list_exchanges", "-q", "--no-table-headers", "-p", vhost, "name"))), ours(queuesOf(t, server, vhost))
}

// TestEachPartDeleted deletes one exchange or queue of a namespace after the other, and those of the
// digits of a level together. Meanwhile one process pushes and another works. Each later push comes once,
// also with a delay that passes the deleted part.
func TestEachPartDeleted(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	ctx := deadline(t, 20*time.Minute)
	server, vhost := testenv.RabbitMQ(t, testenv.PrivateRabbit(), testenv.RabbitAdvanced("dead_letter_worker_publisher_confirm_timeout", "2000")), "/"
	url := server.URL()
	pusher, worker := open(t, url), open(t, url)
	parked := openOn(t, newBackend(t, url), "parked") // for delays that are too long to wait for
	ch := channel(t, url)
	exchanges, queues := partsOf(t, server, vhost)
	if len(exchanges) != 8+201 || len(queues) != 206 {
		t.Fatalf("got %d exchanges and %d queues: %q %q", len(exchanges), len(queues), exchanges, queues)
	}
	n := 0
	pushAround := func(what string) {
		t.Helper()
		var ms []backend.Message
		for _, delay := range []time.Duration{0, 0x25 * time.Millisecond, 0x2c0 * time.Millisecond, deletedDelay} {
			n++
			ms = append(ms, message(fmt.Sprintf("%s %d", what, n), delay)...)
		}
		must(t, pusher.Schedule(ctx, ms)...)
		drain(ctx, t, worker, len(ms))
	}
	for _, name := range exchanges {
		if strings.Contains(name, ".w") && slices.Contains(queues, name) {
			continue // of a digit
		}
		must(t, ch.ExchangeDelete(name, false, false))
		pushAround(name)
	}
	for k := range 7 {
		for _, remove := range []func(string){
			func(name string) { must(t, ch.ExchangeDelete(name, false, false)) },
			func(name string) { deleteQueue(t, ch, name) },
		} {
			var ms []backend.Message
			for d := 1; d < digits(k); d++ {
				name := fmt.Sprintf("delayq.v1.w%d.%x", k, d)
				remove(name)
				ms = append(ms, message(name, time.Duration(d<<bitsBelow(k))*time.Millisecond)...)
			}
			if k > 1 {
				must(t, parked.Schedule(ctx, ms)...) // which declares them again
				continue
			}
			must(t, pusher.Schedule(ctx, ms)...)
			drain(ctx, t, worker, len(ms))
		}
	}
	for _, name := range queues {
		if strings.Contains(name, ".w") || strings.HasSuffix(name, ".parked") {
			continue
		}
		deleteQueue(t, ch, name)
		if strings.Contains(name, ".dead.") {
			deadLetterOne(ctx, t, pusher, worker)
		}
		pushAround(name)
	}
	again, queuesAgain := partsOf(t, server, vhost)
	if len(again) != len(exchanges) || len(queuesAgain) != len(queues) {
		t.Errorf("there are %d exchanges and %d queues again; want %d and %d", len(again), len(queuesAgain), len(exchanges), len(queues))
	}
}

// deadLetterOne makes a dead letter, and lists it.
func deadLetterOne(ctx context.Context, t *testing.T, pusher, worker backend.Queue) {
	t.Helper()
	must(t, pusher.Schedule(ctx, message("dies", 0))...)
	deadLetter(ctx, t, worker, receiveOne(ctx, t, worker, "dies"))
	ls, _, err := worker.ListDead(ctx, "", 10)
	must(t, err)
	if len(ls) != 1 || ls[0].ID != "dies" {
		t.Errorf("the dead letters are %+v", ls)
	}
}

// TestPusherDeclaresAgain deletes the queue under a process that only pushes. A worker that opens
// it later gets all messages, with and without a delay.
func TestPusherDeclaresAgain(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	for what, delay := range map[string]time.Duration{"at once": 0, "delayed": 300 * time.Millisecond} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			url := vhost(t)
			ctx := deadline(t, patience)
			pusher, ch := open(t, url), channel(t, url)
			for _, name := range []string{"delayq.v1.q.", "delayq.v1.dead."} {
				deleteQueue(t, ch, name+queueOf(t))
			}
			must(t, pusher.Schedule(ctx, batch("m", 20, delay))...)
			if delay > 0 {
				await(t, "the pusher to move the messages back", func() bool { return readyOr0(t, url, ownQueue(t)) == 20 })
			}
			drain(ctx, t, open(t, url), 20)
		})
	}
}

// readyOr0 is ready, and 0 if there is no such queue.
func readyOr0(t *testing.T, url, queue string) int {
	t.Helper()
	q, err := channel(t, url).QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil {
		return 0
	}
	return q.Messages
}

// TestNextOpenGetsUndeliverableMessages closes the pusher before its messages end in undeliverable.
// The next worker that opens the queue gets them.
func TestNextOpenGetsUndeliverableMessages(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	url := vhost(t)
	ctx := deadline(t, patience)
	b := rabbitmq.New(url)
	pusher, ch := openOn(t, b, "orders"), channel(t, url)
	must(t, pusher.Schedule(ctx, batch("m", 20, 20*time.Second))...) // they come once the queue is gone
	must(t, b.Close())
	deleteQueue(t, ch, "delayq.v1.q.orders")
	await(t, "messages without a queue", func() bool { return ready(t, ch, undeliverable) == 20 })
	other := newBackend(t, url)
	wantNoMessage(t, openOn(t, other, "others"), time.Second)
	drain(ctx, t, openOn(t, other, "orders"), 20)
}

// TestManyUndeliverableMessagesMoveOnce moves more messages than the broker's channel passes acks on
// for at once. Each comes once, and none is back in undeliverable when the mover has closed.
func TestManyUndeliverableMessagesMoveOnce(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	const n = 400
	url := vhost(t)
	ctx := deadline(t, patience)
	b := rabbitmq.New(url)
	pusher, ch := openOn(t, b, "orders"), channel(t, url)
	must(t, pusher.Schedule(ctx, batch("m", n, 20*time.Second))...) // they come once the queue is gone
	must(t, b.Close())
	deleteQueue(t, ch, "delayq.v1.q.orders")
	await(t, "messages without a queue", func() bool { return ready(t, ch, undeliverable) == n })
	mover := rabbitmq.New(url)
	log := new(logBuffer)
	q := openLogging(t, mover, "orders", log)
	drain(ctx, t, q, n)
	await(t, "the mover to be done", func() bool {
		sum := 0
		for _, found := range regexp.MustCompile(`messages=(\d+)`).FindAllStringSubmatch(log.String(), -1) {
			moved, err := strconv.Atoi(found[1])
			must(t, err)
			sum += moved
		}
		return sum == n
	})
	wantNoMessage(t, q, time.Second)
	must(t, mover.Close())
	if left := ready(t, ch, undeliverable); left > 0 {
		t.Errorf("%d messages were moved, and are in undeliverable again", left)
	}
}

// TestVhostMadeAgain deletes the whole virtual host under a process that only pushes, and makes it
// again.
func TestVhostMadeAgain(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	ctx := deadline(t, patience)
	server := testenv.RabbitMQ(t, testenv.PrivateRabbit())
	vhost := server.Vhost(t)
	pusher := open(t, server.VhostURL(vhost))
	must(t, pusher.Schedule(ctx, message("before", time.Hour))...)
	server.Ctl("delete_vhost", vhost)
	server.AddVhost(vhost)
	pushed := make(map[string]bool)
	for i, delay := range []time.Duration{0, 300 * time.Millisecond} {
		for try := 0; len(pushed) == i; try++ { // the first may have an unknown outcome
			within, cancel := context.WithTimeout(ctx, 5*time.Second)
			id := fmt.Sprint(i, "-", try)
			if pusher.Schedule(within, message(id, delay))[0] == nil {
				pushed[id] = true
			}
			cancel()
		}
	}
	worker := open(t, server.VhostURL(vhost))
	for len(pushed) > 0 {
		ds, err := worker.Receive(ctx, 1, time.Minute)
		must(t, err)
		delete(pushed, ds[0].ID)
		ack(ctx, t, worker, ds...)
	}
}

// TestQueueDeletedAndMadeAgain deletes the queue under a worker that is subscribed, again and
// again. The pusher makes it again each time, and the worker goes on.
func TestQueueDeletedAndMadeAgain(t *testing.T) {
	t.Parallel()
	ctx := deadline(t, patience)
	url := shared(t)
	pusher, worker, ch := open(t, url), open(t, url), channel(t, url)
	last := time.Now() // that the worker had a message
	take := func(id string) {
		d := receiveAll(ctx, t, worker, 1)[0]
		if d.ID != id || time.Now().Before(d.Due) || d.Attempt != 1 && time.Since(last) < withoutFillers {
			t.Errorf("got %+v; want %s, due, as attempt 1", d, id)
		}
		ack(ctx, t, worker, d)
		last = time.Now()
	}
	for i := range 20 {
		before, after := fmt.Sprint("before ", i), fmt.Sprint("after ", i)
		must(t, pusher.Schedule(ctx, message(before, 0))...)
		take(before)
		deleteQueue(t, ch, ownQueue(t))
		must(t, pusher.Schedule(ctx, message(after, 0))...)
		take(after)
	}
}

// TestQueueAndExchangeDeleted deletes a queue and the exchange that it is bound to. The next push
// declares both, and so does the next handle.
func TestQueueAndExchangeDeleted(t *testing.T) {
	url := vhost(t)
	ctx := deadline(t, patience)
	b := newBackend(t, url)
	pusher, ch := openOn(t, b, "both"), channel(t, url)
	remove := func() {
		deleteQueue(t, ch, "delayq.v1.q.both")
		must(t, ch.ExchangeDelete("delayq.v1.deliver", false, false))
	}
	remove()
	must(t, pusher.Schedule(ctx, message("a", 0))...)
	remove()
	must(t, openOn(t, b, "both").Schedule(ctx, message("b", 0))...)
	drain(ctx, t, pusher, 1)
}

// A queue of dead letters that was deleted has none, until the next one dies.
func TestDeadLettersDeleted(t *testing.T) {
	t.Parallel()
	ctx := deadline(t, patience)
	server := testenv.SharedRabbitMQ(t)
	url := server.VhostURL(server.Vhost(t))
	q := openOn(t, newBackend(t, url), "orders")
	deadLetterOne(ctx, t, q, q)
	conn, err := amqp.Dial(url)
	must(t, err)
	defer func() { _ = conn.Close() }()
	ch, err := conn.Channel()
	must(t, err)
	deleteQueue(t, ch, "delayq.v1.dead.orders")
	if ls, _, err := q.ListDead(ctx, "", 10); err != nil || len(ls) != 0 {
		t.Errorf("listed are %+v, %v", ls, err)
	}
	for what, errs := range map[string][]error{"Redrive": q.Redrive(ctx, []string{"dies"}), "DeleteDead": q.DeleteDead(ctx, []string{"dies"})} {
		if len(errs) != 1 || !errors.Is(errs[0], backend.ErrNotFound) {
			t.Errorf("%s returns %v", what, errs)
		}
	}
	if n, more, err := q.TrimDead(ctx, backend.Retention{MaxCount: 1}); n != 0 || more || err != nil {
		t.Errorf("TrimDead returns %d, %v, %v", n, more, err)
	}
	deadLetterOne(ctx, t, q, q)
}
