package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
)

var longReason = strings.Repeat("r", backend.MaxReason)

// pushMeanwhile pushes messages without a delay until stop is called. None may fail.
func pushMeanwhile(ctx context.Context, t *testing.T, q backend.Queue) (stop func()) {
	t.Helper()
	ended := make(chan struct{})
	var pushing sync.WaitGroup
	pushing.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-ended:
				return
			default:
			}
			if err := q.Schedule(ctx, message(fmt.Sprint("other-", n), 0))[0]; err != nil {
				t.Errorf("another push: %v", err)
				return
			}
		}
	})
	stop = sync.OnceFunc(func() { close(ended); pushing.Wait() })
	t.Cleanup(stop)
	return stop
}

// TestForeignHeadersThatGrow nacks and dead-letters foreign messages. Their headers fit into a frame
// as they came, and not as text, or not beside delayq's own.
func TestForeignHeadersThatGrow(t *testing.T) {
	t.Parallel()
	ctx := deadline(t, patience)
	url := shared(t)
	b := newBackend(t, url)
	q, other := openOn(t, b, queueOf(t)), openOn(t, b, queueOf(t)+"-other")
	arrays, full, numbers := make(amqp.Table), make(amqp.Table), make(amqp.Table)
	for i := range 14 {
		arrays[fmt.Sprint("array-", i)] = make([]any, 8000)
		full[fmt.Sprint("text-", i)] = strings.Repeat("x", 9200)
	}
	for i := range 8000 { // the client library reads no more than 8192
		numbers[fmt.Sprintf("%04x", i)] = -1.2345678901234567e-300
	}
	conn := connection(t, url)
	for i, h := range []amqp.Table{arrays, full, numbers} {
		m := amqp.Publishing{MessageId: fmt.Sprint("m", i), Body: fmt.Append(nil, "body of m", i)}
		m.Headers = amqp.Table{"delayq-headers": h}
		publish(t, conn, "", ownQueue(t), m)
	}
	stop := pushMeanwhile(ctx, t, other)
	for _, d := range receiveAll(ctx, t, q, 3) {
		nack(ctx, t, q, d, 0)
	}
	for _, d := range receiveAll(ctx, t, q, 3) {
		must(t, q.Dead(ctx, []backend.DeadLetterRequest{{Lease: d.Lease(), Reason: longReason}})...)
	}
	stop()
	ls, _, err := q.ListDead(ctx, "", 10)
	if must(t, err); len(ls) != 3 {
		t.Fatalf("%d dead letters, want 3", len(ls))
	}
	for _, l := range ls {
		if string(l.Body) != "body of "+l.ID || l.ID == "m1" && len(l.Headers) < 10 {
			t.Errorf("%s has the body %q and %d headers", l.ID, l.Body, len(l.Headers))
		}
	}
}

// TestHeadersBeyondFrameMax pushes headers that are larger than a frame of the broker, beside other
// pushes. Only that push fails.
func TestHeadersBeyondFrameMax(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	ctx := deadline(t, patience)
	server := testenv.RabbitMQ(t, testenv.PrivateRabbit(), testenv.RabbitConfig("frame_max", "16384"))
	b := newBackend(t, server.URL())
	q, other := openOn(t, b, "q"), openOn(t, b, "other")
	stop := pushMeanwhile(ctx, t, other)
	large := backend.Message{ID: "large", Headers: map[string]string{"k": strings.Repeat("v", 20<<10)}}
	err := q.Schedule(ctx, []backend.Message{large})[0]
	wantError(t, err, "headers of", "allowed is up to 12288 bytes", "frame_max")
	if !errors.Is(err, backend.ErrInvalid) {
		t.Errorf("%v does not match ErrInvalid", err)
	}
	must(t, q.Schedule(ctx, message("a", 0))...)
	d := receiveOne(ctx, t, q, "a")
	must(t, q.Dead(ctx, []backend.DeadLetterRequest{{Lease: d.Lease(), Reason: longReason}})...)
	stop()
	ls, _, err := q.ListDead(ctx, "", 10)
	if must(t, err); len(ls) != 1 || len(ls[0].Reason) < 8<<10 {
		t.Errorf("got %d dead letters", len(ls))
	}
}

// The AMQP client ends a connection on which a message with more comes.
func TestMostHeaders(t *testing.T) {
	t.Parallel()
	ctx := deadline(t, patience)
	q := open(t, shared(t))
	m := message("many", 0)[0]
	m.Headers = make(map[string]string)
	for i := range 8192 {
		m.Headers[strconv.Itoa(i)] = ""
	}
	must(t, q.Schedule(ctx, []backend.Message{m})...)
	ack(ctx, t, q, receiveOne(ctx, t, q, "many"))
	m.Headers["one more"] = ""
	if err := q.Schedule(ctx, []backend.Message{m})[0]; !errors.Is(err, backend.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}
