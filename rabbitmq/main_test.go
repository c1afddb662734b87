package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/rabbitmq"
)

func TestMain(m *testing.M) {
	if os.Getenv(workerVar) != "" {
		if err := work(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testenv.Main(m)
}

// patience bounds waits for required events, the start of a broker included. It matters only if the
// code is broken or the machine is busy.
const patience = 5 * time.Minute

func deadline(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// await asks until the condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	awaitEvery(t, 5*time.Millisecond, what, holds)
}

// awaitEvery is await with another pause between two questions.
func awaitEvery(t *testing.T, pause time.Duration, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); {
		if time.Now().After(end) {
			t.Fatalf("waited %v for %s", patience, what)
		}
		time.Sleep(pause) // the look costs the broker work; the loop has a deadline
	}
}

// shared returns the URL of the shared broker's first vhost, for tests that keep to queues of their
// own. There the levels are declared once; declaring their 200 queues takes a broker seconds.
func shared(t *testing.T) string {
	t.Helper()
	return testenv.SharedRabbitMQ(t).URL()
}

// vhost returns the URL of a vhost of the test's own on the shared broker.
func vhost(t *testing.T) string {
	t.Helper()
	server, name := sharedVhost(t)
	return server.VhostURL(name)
}

// few has a vhost of the test's own get one queue for delays instead of 200, which cost the broker
// seconds. It is for tests that do not look at how messages wait.
var few = rabbitmq.Buckets(time.Second)

// vhosts bounds the tests with a vhost of their own to two at a time. A broker on a busy machine
// fails to declare the levels of six vhosts, with cluster_not_formed.
var vhosts = make(chan struct{}, 2)

func sharedVhost(t *testing.T) (server *testenv.RabbitServer, name string) {
	t.Helper()
	vhosts <- struct{}{}
	t.Cleanup(func() { <-vhosts })
	server = testenv.SharedRabbitMQ(t)
	return server, server.Vhost(t)
}

// behindProxy returns the URL of the shared broker through a proxy.
func behindProxy(t *testing.T, url string) (string, *testenv.FaultProxy) {
	t.Helper()
	server := testenv.SharedRabbitMQ(t)
	proxy := testenv.Proxy(t, server.Addr())
	return strings.Replace(url, server.Addr(), proxy.Addr(), 1), proxy
}

// newBackend returns a backend that is closed at the end of the test.
func newBackend(t *testing.T, url string, opts ...rabbitmq.Option) *rabbitmq.Backend {
	t.Helper()
	b := rabbitmq.New(url, opts...)
	t.Cleanup(func() { must(t, b.Close()) })
	return b
}

// open opens the test's queue on a new backend.
func open(t *testing.T, url string, opts ...rabbitmq.Option) backend.Queue {
	t.Helper()
	return openOn(t, newBackend(t, url, opts...), queueOf(t))
}

var (
	runs    sync.Map // the numbers of runs, by *testing.T
	lastRun atomic.Int64
)

// queueOf returns a queue name for the test, with the number of the run: with -count, queues of
// earlier runs still exist. It has no dot, since routing keys have a slash for a dot.
func queueOf(t *testing.T) string {
	t.Helper()
	run, _ := runs.LoadOrStore(t, lastRun.Add(1))
	return fmt.Sprintf("%s-%d", strings.ReplaceAll(t.Name(), "/", ":"), run)
}

// ownQueue is the broker's name of the test's queue.
func ownQueue(t *testing.T) string { return "delayq.v1.q." + queueOf(t) }

const undeliverable = "delayq.v1.undeliverable"

func openOn(t *testing.T, b *rabbitmq.Backend, name string) backend.Queue {
	t.Helper()
	q, err := tryOpen(t, b, name)
	must(t, err)
	return q
}

func tryOpen(t *testing.T, b *rabbitmq.Backend, name string) (backend.Queue, error) {
	t.Helper()
	return tryOpenWith(t, b, name, quiet())
}

func tryOpenWith(t *testing.T, b *rabbitmq.Backend, name string, o backend.Options) (backend.Queue, error) {
	t.Helper()
	ctx := deadline(t, patience)
	return testenv.RetryOnBusyRabbit(ctx, func() (backend.Queue, error) { return b.Open(ctx, name, o) })
}

// openLogging opens a queue that logs to log.
func openLogging(t *testing.T, b *rabbitmq.Backend, name string, log *logBuffer) backend.Queue {
	t.Helper()
	q, err := tryOpenWith(t, b, name, backend.Options{Logger: log.logger()})
	must(t, err)
	return q
}

// newQueue returns a queue for programs, which logs nothing.
func newQueue(t *testing.T, b *rabbitmq.Backend, name string, opts ...delayq.Option) (delayq.Queue, error) {
	t.Helper()
	ctx := deadline(t, patience)
	opts = append(opts, delayq.WithBackend(b), delayq.WithLogger(quiet().Logger))
	return testenv.RetryOnBusyRabbit(ctx, func() (delayq.Queue, error) { return delayq.New(ctx, name, opts...) })
}

func quiet() backend.Options { return backend.Options{Logger: slog.New(slog.DiscardHandler)} }

func message(id string, delay time.Duration) []backend.Message {
	return []backend.Message{{ID: id, Body: []byte("body of " + id), Delay: delay}}
}

// batch returns messages with the ids prefix-0, prefix-1 and so on.
func batch(prefix string, n int, delay time.Duration) []backend.Message {
	ms := make([]backend.Message, n)
	for i := range ms {
		ms[i] = message(fmt.Sprintf("%s-%d", prefix, i), delay)[0]
	}
	return ms
}

// receiveOne waits for one message, which must have that id.
func receiveOne(ctx context.Context, t *testing.T, q backend.Queue, id string) backend.Delivery {
	t.Helper()
	ds, err := q.Receive(ctx, 1, time.Minute)
	must(t, err)
	if len(ds) != 1 || ds[0].ID != id || string(ds[0].Body) != "body of "+id {
		t.Fatalf("got %+v, want %q", ds, id)
	}
	return ds[0]
}

func ack(ctx context.Context, t *testing.T, q backend.Queue, ds ...backend.Delivery) {
	t.Helper()
	must(t, q.Ack(ctx, leases(ds))...)
}

// receiveAll receives n messages, with long leases.
func receiveAll(ctx context.Context, t *testing.T, q backend.Queue, n int) (all []backend.Delivery) {
	t.Helper()
	for len(all) < n {
		ds, err := q.Receive(ctx, n, time.Hour)
		must(t, err)
		all = append(all, ds...)
	}
	return all
}

// takeAll receives and acknowledges n messages. It calls check with each.
func takeAll(ctx context.Context, t *testing.T, q backend.Queue, n int, check func(backend.Delivery)) {
	t.Helper()
	for taken := 0; taken < n; {
		ds, err := q.Receive(ctx, n, time.Minute)
		must(t, err)
		for _, d := range ds {
			check(d)
		}
		ack(ctx, t, q, ds...)
		taken += len(ds)
	}
}

// drain takes n messages, each once and as attempt 1.
func drain(ctx context.Context, t *testing.T, q backend.Queue, n int) {
	t.Helper()
	seen := make(map[string]bool)
	takeAll(ctx, t, q, n, func(d backend.Delivery) {
		if seen[d.ID] || d.Attempt != 1 || time.Now().Before(d.Due) {
			t.Errorf("got %+v; want each message once, due, as attempt 1", d)
		}
		seen[d.ID] = true
	})
}

func nack(ctx context.Context, t *testing.T, q backend.Queue, d backend.Delivery, delay time.Duration) {
	t.Helper()
	must(t, q.Nack(ctx, []backend.Return{{Lease: d.Lease(), Delay: delay}})...)
}

// deadLetter makes dead letters of leased messages.
func deadLetter(ctx context.Context, t testing.TB, q backend.Queue, ds ...backend.Delivery) {
	t.Helper()
	rs := make([]backend.DeadLetterRequest, len(ds))
	for i := range ds {
		rs[i] = backend.DeadLetterRequest{Lease: ds[i].Lease(), Reason: "of the test"}
	}
	must(t, q.Dead(ctx, rs)...)
}

func leases(ds []backend.Delivery) []backend.Lease {
	ls := make([]backend.Lease, len(ds))
	for i := range ds {
		ls[i] = ds[i].Lease()
	}
	return ls
}

// wantNoMessage looks for a message that must not come.
func wantNoMessage(t *testing.T, q backend.Queue, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if ds, err := q.Receive(ctx, 1, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %+v, %v; want no message", ds, err)
	}
}

func connection(t *testing.T, url string) *amqp.Connection {
	t.Helper()
	conn, err := amqp.DialConfig(url, amqp.Config{Dial: amqp.DefaultDial(patience), Heartbeat: patience})
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// channel opens a channel on a connection of its own.
func channel(t *testing.T, url string) *amqp.Channel {
	t.Helper()
	ch, err := connection(t, url).Channel()
	must(t, err)
	return ch
}

// publish publishes a message as another program does, until the broker has it. On a busy machine a
// new queue may have no leader yet. It then takes no message, and none that follows on the channel.
func publish(t *testing.T, conn *amqp.Connection, exchange, key string, m amqp.Publishing) {
	t.Helper()
	m.DeliveryMode = amqp.Persistent
	await(t, "the broker to take a message", func() bool {
		ch, err := conn.Channel()
		must(t, err)
		defer func() { _ = ch.Close() }()
		must(t, ch.Confirm(false))
		c, err := ch.PublishWithDeferredConfirmWithContext(t.Context(), exchange, key, true, false, m)
		must(t, err)
		taken, err := c.WaitContext(deadline(t, patience))
		must(t, err)
		if ch.IsClosed() {
			t.Fatalf("the broker closes the channel of %+v", m)
		}
		return taken
	})
}

func deleteQueue(t *testing.T, ch *amqp.Channel, name string) {
	t.Helper()
	_, err := ch.QueueDelete(name, false, false, false)
	must(t, err)
}

// ready returns how many messages of a queue are not delivered.
func ready(t *testing.T, ch *amqp.Channel, queue string) int {
	t.Helper()
	return look(t, ch, queue).Messages
}

// look returns the counts of a queue. The zeros of a broker that took 250 ms for them may be false.
func look(t *testing.T, ch *amqp.Channel, queue string) (q amqp.Queue) {
	t.Helper()
	await(t, "the counts of "+queue, func() bool {
		began := time.Now()
		var err error
		q, err = ch.QueueDeclarePassive(queue, true, false, false, false, nil)
		must(t, err)
		return q.Messages > 0 || q.Consumers > 0 || time.Since(began) < 200*time.Millisecond
	})
	return q
}
