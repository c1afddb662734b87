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

// patience bounds what must happen, the start of a broker included. It only matters when something
// is broken or the machine is busy.
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
	for end := time.Now().Add(patience); !holds(); {
		if time.Now().After(end) {
			t.Fatalf("waited %v for %s", patience, what)
		}
		time.Sleep(5 * time.Millisecond)
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

// vhosts are those of tests that run, two at a time. A broker on a busy machine fails to declare
// the levels of six, with cluster_not_formed.
var vhosts = make(chan struct{}, 2)

func sharedVhost(t *testing.T) (server *testenv.RabbitServer, name string) {
	t.Helper()
	vhosts <- struct{}{}
	t.Cleanup(func() { <-vhosts })
	server = testenv.SharedRabbitMQ(t)
	return server, server.Vhost(t)
}

// open opens the test's queue. What it opens ends with the test.
func open(t *testing.T, url string, opts ...rabbitmq.Option) backend.Queue {
	t.Helper()
	b := rabbitmq.New(url, opts...)
	t.Cleanup(func() { must(t, b.Close()) })
	return openOn(t, b, queueOf(t))
}

var (
	runs    sync.Map // the numbers of runs, by *testing.T
	lastRun atomic.Int64
)

// queueOf is the test's name as a queue can have it, and a number: with -count, a test runs several
// times beside what is left. It has no dot, which routing keys write otherwise.
func queueOf(t *testing.T) string {
	t.Helper()
	run, _ := runs.LoadOrStore(t, lastRun.Add(1))
	return fmt.Sprintf("%s-%d", strings.ReplaceAll(t.Name(), "/", ":"), run)
}

func openOn(t *testing.T, b *rabbitmq.Backend, name string) backend.Queue {
	t.Helper()
	q, err := tryOpen(t, b, name)
	must(t, err)
	return q
}

func tryOpen(t *testing.T, b *rabbitmq.Backend, name string) (backend.Queue, error) {
	t.Helper()
	ctx := deadline(t, patience)
	return testenv.RetryOnBusyRabbit(ctx, func() (backend.Queue, error) { return b.Open(ctx, name, quiet()) })
}

func quiet() backend.Options { return backend.Options{Logger: slog.New(slog.DiscardHandler)} }

func message(id string, delay time.Duration) []backend.Message {
	return []backend.Message{{ID: id, Body: []byte("body of " + id), Delay: delay}}
}

// receiveOne waits for one message, which must be that.
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

func leases(ds []backend.Delivery) []backend.Lease {
	ls := make([]backend.Lease, len(ds))
	for i := range ds {
		ls[i] = ds[i].Lease()
	}
	return ls
}

// nothing looks for a message that must not come.
func nothing(t *testing.T, q backend.Queue, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if ds, err := q.Receive(ctx, 1, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %+v, %v; want no message", ds, err)
	}
}

// channel opens a channel beside the backend's.
func channel(t *testing.T, url string) *amqp.Channel {
	t.Helper()
	conn, err := amqp.DialConfig(url, amqp.Config{Dial: amqp.DefaultDial(patience), Heartbeat: patience})
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	must(t, err)
	return ch
}

// ready returns how many messages of a queue are not handed out.
func ready(t *testing.T, ch *amqp.Channel, queue string) int {
	t.Helper()
	q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	must(t, err)
	return q.Messages
}

func replaceOnce(s, what, by string) string { return strings.Replace(s, what, by, 1) }
