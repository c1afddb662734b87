package rabbitmq_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/judge"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/rabbitmq"
)

// TestUnroutable removes the binding of a queue for which messages wait, more than a level passes
// on at once. Another queue's messages come through the same levels. The others go to
// undeliverable, and are moved back.
func TestUnroutable(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	const n, delay = 100, 2 * time.Second // most wait in one queue, of 1,984 ms
	url := vhost(t)
	ctx := deadline(t, patience)
	b := newBackend(t, url)
	lost, kept := openOn(t, b, "lost"), openOn(t, b, "kept")
	must(t, lost.Schedule(ctx, batch("lost", n, delay))...)
	must(t, kept.Schedule(ctx, batch("kept", n, delay+100*time.Millisecond))...)
	ch := channel(t, url)
	must(t, ch.QueueUnbind("delayq.v1.q.lost", "amq./lost", "delayq.v1.deliver", nil))
	drain(ctx, t, kept, n)
	drain(ctx, t, lost, n)
	wantNoMessage(t, lost, 100*time.Millisecond)
}

// publishAsLevel publishes a message to the test's queue as a level does.
func publishAsLevel(t *testing.T, url, id string, headers amqp.Table) {
	t.Helper()
	publish(t, connection(t, url), "delayq.v1.deliver", "amq./"+queueOf(t), amqp.Publishing{MessageId: id, Headers: headers, Body: []byte("body of " + id)})
}

// TestArrivesEarly has messages arrive before they are due. The handle keeps the nearly due ones,
// and publishes the others to the levels again. Each is handed out once, when it is due.
func TestArrivesEarly(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	for _, early := range []time.Duration{5 * time.Millisecond, 300 * time.Millisecond, 3 * time.Second} {
		t.Run(early.String(), func(t *testing.T) {
			t.Parallel()
			ctx := deadline(t, patience)
			url := shared(t)
			q := open(t, url)
			due := time.Now().Add(early)
			publishAsLevel(t, url, "early", amqp.Table{"delayq-due": due.UnixMicro(), "x-death": []any{amqp.Table{"queue": "delayq.v1.w0.1"}}})
			d := receiveOne(ctx, t, q, "early")
			if late := judge.Late(due, time.Now()); late < 0 || late > lateAtMost || d.Attempt != 1 {
				t.Errorf("%v after it was due: %+v", late, d)
			}
			ack(ctx, t, q, d)
			wantNoMessage(t, q, 300*time.Millisecond)
		})
	}
}

// TestRepublishedToLevels inspects a message in its level that arrived far too early.
func TestRepublishedToLevels(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	url := vhost(t)
	q, ch := open(t, url), channel(t, url)
	due := time.Now().Add(100 * 24 * time.Hour)
	publishAsLevel(t, url, "far", amqp.Table{"delayq-due": due.UnixMicro(), "delayq-attempts": int64(3), "x-death": []any{amqp.Table{"queue": "x"}}, "x-other": "y"})
	var d amqp.Delivery
	await(t, "the message at its highest digit", func() bool {
		if _, err := q.Receive(deadline(t, time.Second), 1, time.Minute); err == nil {
			t.Fatal("the message came")
		}
		got, ok, err := ch.Get("delayq.v1.w6.f", false)
		must(t, err)
		d = got
		return ok
	})
	delete(d.Headers, "x-delivery-count") // the broker's
	want := amqp.Table{"delayq-due": due.UnixMicro(), "delayq-attempts": int64(3), "delayq-queue": []byte(queueOf(t))}
	if fmt.Sprint(d.Headers) != fmt.Sprint(want) || d.MessageId != "far" || string(d.Body) != "body of far" {
		t.Errorf("got %+v, want the headers %v", d, want)
	}
	must(t, d.Ack(false))
}

// TestManyRetries nacks a message 30 times. A broker before 4.0 drops a message that passes a queue
// again with its history.
func TestManyRetries(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	ctx := deadline(t, patience)
	url := shared(t)
	q := open(t, url)
	must(t, q.Schedule(ctx, message("a", 17*time.Millisecond))...)
	for attempt := 1; attempt <= 30; attempt++ {
		d := receiveOne(ctx, t, q, "a")
		if d.Attempt != attempt {
			t.Fatalf("got attempt %d, want %d", d.Attempt, attempt)
		}
		nack(ctx, t, q, d, 17*time.Millisecond)
	}
	ack(ctx, t, q, receiveOne(ctx, t, q, "a"))
	wantNoMessage(t, q, 200*time.Millisecond)
}

// TestWaysToWait delivers random delays with each option that allows them.
func TestWaysToWait(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	const n = 300
	for name, opts := range map[string][]rabbitmq.Option{
		"levels":  nil,
		"grain":   {rabbitmq.Grain(16 * time.Millisecond)},
		"odd":     {rabbitmq.Grain(7 * time.Millisecond)},
		"buckets": {rabbitmq.Buckets(time.Second, 100*time.Millisecond, 400*time.Millisecond, 400*time.Millisecond)},
		"short":   {rabbitmq.Buckets(150 * time.Millisecond)},
		"classic": {rabbitmq.Classic()},
		"small":   {rabbitmq.Classic(), rabbitmq.Buckets(300 * time.Millisecond)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTracker(t, open(t, vhost(t), opts...))
			ctx := deadline(t, patience)
			r.push(ctx, n, 3*time.Second)
			for r.missing() > 0 {
				ds, err := r.q.Receive(ctx, 50, time.Minute)
				must(t, err)
				r.note(ds, time.Now())
				ack(ctx, t, r.q, ds...)
			}
			wantNoMessage(t, r.q, 300*time.Millisecond)
			if len(r.again) > 0 {
				t.Errorf("came again: %v", r.again)
			}
		})
	}
}

// TestExactBucket pushes messages at different fractions of a millisecond with a bucket's delay.
// None waits in the next longer bucket.
func TestExactBucket(t *testing.T) {
	t.Parallel()
	q := open(t, vhost(t), rabbitmq.Buckets(200*time.Millisecond, time.Hour))
	ctx := deadline(t, patience)
	const n = 50
	for i := range n {
		must(t, q.Schedule(ctx, message(fmt.Sprint(i), 200*time.Millisecond))...)
	}
	takeAll(ctx, t, q, n, func(backend.Delivery) {})
}

// TestFixed takes one delay only.
func TestFixed(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	q := open(t, vhost(t), rabbitmq.Fixed(300*time.Millisecond))
	ctx := deadline(t, patience)
	began := time.Now()
	errs := q.Schedule(ctx, []backend.Message{
		{ID: "a", Body: []byte("body of a"), Delay: 300 * time.Millisecond},
		{ID: "b", Delay: 200 * time.Millisecond},
		{ID: "c", Body: []byte("body of c")},
		{ID: "d", Due: time.Now().Add(time.Hour)},
	})
	var refusal *backend.InvalidError
	if errs[0] != nil || errs[2] != nil || !errors.As(errs[1], &refusal) || !errors.Is(errs[3], backend.ErrInvalid) {
		t.Fatalf("got %v", errs)
	}
	ack(ctx, t, q, receiveOne(ctx, t, q, "c"))
	a := receiveOne(ctx, t, q, "a")
	if waited := time.Since(began); waited < 300*time.Millisecond {
		t.Errorf("a came after %v", waited)
	}
	ack(ctx, t, q, a)
	wantNoMessage(t, q, 200*time.Millisecond)
}

// TestFixedNack nacks a message with other delays than the fixed one. It waits at least as long as
// the fixed delay, and its due time says so.
func TestFixedNack(t *testing.T) {
	testenv.In(t, testenv.All)
	const fixed = 400 * time.Millisecond
	q := open(t, vhost(t), rabbitmq.Fixed(fixed))
	ctx := deadline(t, 60*time.Second)
	must(t, q.Schedule(ctx, message("m", 0))...)
	for _, delay := range []time.Duration{time.Millisecond, fixed, fixed + fixed/2} {
		d := receiveOne(ctx, t, q, "m")
		before := time.Now()
		nack(ctx, t, q, d, delay)
		after := time.Now()
		d = receiveOne(ctx, t, q, "m")
		wait := max(delay, fixed)
		if d.Due.Before(before.Add(wait)) || d.Due.After(after.Add(wait+time.Millisecond)) || time.Now().Before(d.Due) {
			t.Errorf("a nack of %v at %v is due at %v", delay, before, d.Due)
		}
		nack(ctx, t, q, d, 0)
	}
	ack(ctx, t, q, receiveOne(ctx, t, q, "m"))
}

// TestLongestDelays pushes delays that take several rounds, or have many digits.
func TestLongestDelays(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	url := vhost(t)
	ctx := deadline(t, patience)
	q, ch := open(t, url), channel(t, url)
	for queue, delay := range map[string]time.Duration{
		"delayq.v1.w0.f": 15 * time.Millisecond, // too short for the test to see there
		"delayq.v1.w6.e": 0xeffffff0 * time.Millisecond,
		"delayq.v1.w6.f": backend.MaxDelay,
		"delayq.v1.w5.1": 0x1000100*time.Millisecond - 200*time.Millisecond + rand.N(100*time.Millisecond),
	} {
		must(t, q.Schedule(ctx, message(queue, delay))...)
		if delay > time.Minute {
			await(t, queue, func() bool { return ready(t, ch, queue) == 1 })
		}
	}
	ack(ctx, t, q, receiveOne(ctx, t, q, "delayq.v1.w0.f"))
}

// TestDelayedExchange opens without the plugin, and gets an error.
func TestDelayedExchange(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	b := newBackend(t, vhost(t), rabbitmq.DelayedExchange())
	_, err := tryOpen(t, b, "q")
	if err == nil {
		t.Skip("this broker has the plugin")
	}
	wantError(t, err, "lacks the plugin rabbitmq_delayed_message_exchange", "leave DelayedExchange out")
}
