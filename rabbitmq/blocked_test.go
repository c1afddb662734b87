package rabbitmq_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/rabbitmq"
)

// awaitAlarm pushes a message until the handle knows of the broker's alarm, which the broker reports
// once it has read a message. It returns the error of the last push.
func awaitAlarm(ctx context.Context, t *testing.T, q backend.Queue) (err error) {
	t.Helper()
	await(t, "the broker to report the alarm", func() bool {
		short, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
		defer cancel()
		err = q.Schedule(short, message("to have the broker report the alarm", 100*time.Hour))[0]
		return err != nil && strings.Contains(err.Error(), "the broker takes no messages")
	})
	return err
}

// TestBlockedPushKeepsTime has a push wait for most of its delay. In the levels the message waits
// for the rest at most.
func TestBlockedPushKeepsTime(t *testing.T) {
	t.Parallel()
	ctx := deadline(t, patience)
	server := testenv.RabbitMQ(t, testenv.PrivateRabbit())
	q, ch := open(t, server.URL()), channel(t, server.URL())
	deliveries, err := ch.Consume(ownQueue(t), "", true, false, false, false, nil)
	must(t, err)
	server.SetMemoryAlarm(true)
	_ = awaitAlarm(ctx, t, q)
	const delay, blocked = 8 * time.Second, 7 * time.Second
	began, pushed := time.Now(), make(chan error, 1)
	a := message("a", 0)
	a[0].Due = began.Add(delay) // also if the push begins late
	go func() { pushed <- q.Schedule(ctx, a)[0] }()
	await(t, "most of the delay to be over", func() bool { return time.Since(began) > blocked })
	server.SetMemoryAlarm(false)
	must(t, <-pushed)
	select {
	case d := <-deliveries:
		if w := waited(t, &d); d.MessageId != "a" || w > delay-blocked {
			t.Errorf("%s has waited for %v in the levels, want %v at most", d.MessageId, w, delay-blocked)
		}
	case <-ctx.Done():
		t.Fatal("the message does not come")
	}
}

// TestBlocked raises the broker's memory alarm. Pushes wait, and their errors give the reason.
// Receives and acks go on.
func TestBlocked(t *testing.T) {
	t.Parallel()
	ctx := deadline(t, patience)
	server := testenv.RabbitMQ(t, testenv.PrivateRabbit())
	b := newBackend(t, server.URL())
	q := openOn(t, b, "q")
	must(t, q.Schedule(ctx, append(message("a", 0), message("b", time.Second)...))...)
	server.SetMemoryAlarm(true)
	first := awaitAlarm(ctx, t, q)
	short, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	for _, err := range []error{first, q.Schedule(short, message("late", 0))[0]} {
		wantError(t, err, "the broker takes no messages", "memory", context.DeadlineExceeded.Error())
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v does not match the context's error", err)
		}
	}
	ack(ctx, t, q, receiveOne(ctx, t, q, "a"))
	ack(ctx, t, q, receiveOne(ctx, t, q, "b"))
	pushed := make(chan error, 1)
	go func() { pushed <- q.Schedule(ctx, message("c", 0))[0] }()
	select {
	case err := <-pushed:
		t.Fatalf("a push went through: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	server.SetMemoryAlarm(false)
	must(t, <-pushed)
	for got := ""; got != "c"; {
		ds, err := q.Receive(ctx, 1, time.Minute)
		must(t, err)
		got = ds[0].ID // the others are the pushes with an unknown outcome
		ack(ctx, t, q, ds...)
	}
	server.SetMemoryAlarm(true)
	defer server.SetMemoryAlarm(false)
	_ = awaitAlarm(ctx, t, q)
	go func() { pushed <- q.Schedule(ctx, message("d", 0))[0] }()
	time.Sleep(50 * time.Millisecond) // without a waiting push the test checks less
	must(t, b.Close())
	if err := <-pushed; !errors.Is(err, backend.ErrClosed) {
		t.Errorf("a waiting push returned %v after Close", err)
	}
}

// TestPushesBehindAChannelLeave has the broker not reply while a push opens a channel, as in an
// alarm. Pushes that wait for the channel leave nothing behind. Parallel tests would change the
// number of goroutines.
func TestPushesBehindAChannelLeave(t *testing.T) {
	ctx := deadline(t, patience)
	url, proxy := behindProxy(t, shared(t))
	q := open(t, url)
	must(t, q.Schedule(ctx, message("a", 0))...)
	const oneDigit = 0xa00 * time.Millisecond
	push := func() error {
		short, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
		defer cancel()
		return q.Schedule(short, message("b", oneDigit))[0]
	}
	proxy.StallAfter(0)
	defer proxy.Resume()
	if err := push(); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the push that opens the channel: %v", err)
	}
	before := runtime.NumGoroutine()
	var pushes sync.WaitGroup
	for range 100 {
		pushes.Go(func() {
			if err := push(); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a push: %v", err)
			}
		})
	}
	pushes.Wait()
	const some = 5 // of the proxy and the client library
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before+some; {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines became %d", before, runtime.NumGoroutine())
		}
		time.Sleep(5 * time.Millisecond) // polling: the deadline above decides
	}
}

// TestCloseDuringAnAlarm closes a backend whose checker has to declare a deleted exchange again on a
// connection that an alarm blocks, since the broker accepts no other.
func TestCloseDuringAnAlarm(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	ctx := deadline(t, patience)
	server := testenv.RabbitMQ(t, testenv.PrivateRabbit())
	b, log := rabbitmq.New(server.URL()), new(logBuffer)
	q := openLogging(t, b, "q", log)
	ch := channel(t, server.URL())
	server.Ctl("set_vhost_limits", `{"max-connections":3}`)
	server.SetMemoryAlarm(true)
	defer server.SetMemoryAlarm(false)
	_ = awaitAlarm(ctx, t, q)
	must(t, ch.ExchangeDelete("delayq.v1.deliver", false, false))
	await(t, "the checker to declare it", func() bool { return strings.Contains(log.String(), "taking the open one") })
	closed := make(chan error, 1)
	go func() { closed <- b.Close() }()
	select {
	case err := <-closed:
		must(t, err)
	case <-time.After(30 * time.Second):
		server.SetMemoryAlarm(false)
		t.Fatalf("Close waits for the alarm to end: %v", <-closed)
	}
}
