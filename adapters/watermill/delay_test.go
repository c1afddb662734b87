package watermill_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ThreeDotsLabs/watermill/components/delay"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/memory"
)

// Times are virtual in a bubble, so that these tests know to the nanosecond when a message comes.

// publishDelayed publishes a message with delay metadata and returns how long it took to come.
func publishDelayed(t *testing.T, d delay.Delay, wait time.Duration) time.Duration {
	t.Helper()
	b := memory.New()
	defer func() { must(t, b.Close()) }()
	pub, sub := pair(t, b)
	defer func() { must(t, sub.Close()) }()
	msg := message.NewMessage("1", nil)
	delay.Message(msg, d)
	began := time.Now()
	time.Sleep(wait)
	must(t, pub.Publish("topic", msg))
	messages, err := sub.Subscribe(t.Context(), "topic")
	must(t, err)
	(<-messages).Ack()
	return time.Since(began)
}

func TestDelay(t *testing.T) {
	for _, c := range []struct {
		name  string
		delay func() delay.Delay
		wait  time.Duration // between the choice of the delay and Publish
		want  time.Duration
	}{
		{"for, exactly", func() delay.Delay { return delay.For(90 * time.Minute / 7) }, 0, 90 * time.Minute / 7},
		{"until", func() delay.Delay { return delay.Until(time.Now().Add(time.Hour)) }, 0, time.Hour},
		{"until, published later", func() delay.Delay { return delay.Until(time.Now().Add(time.Hour)) }, time.Minute, time.Hour + time.Second},
		{"for, published later", func() delay.Delay { return delay.For(time.Hour) }, time.Minute, time.Hour + time.Second},
		{"cut by nearly a second", func() delay.Delay { return delay.For(time.Hour + 999*time.Millisecond) }, time.Minute, time.Hour + time.Second},
		{"published in the next second", func() delay.Delay { return delay.For(990 * time.Millisecond) }, 20 * time.Millisecond, time.Second},
		{"over, when published", func() delay.Delay { return delay.For(time.Hour) }, 2 * time.Hour, 2 * time.Hour},
		{"in the past", func() delay.Delay { return delay.Until(time.Now().Add(-time.Hour)) }, 0, 0},
		{"none", func() delay.Delay { return delay.Delay{} }, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if took := publishDelayed(t, c.delay(), c.wait); took != c.want {
					t.Errorf("the message came after %v, want %v", took, c.want)
				}
			})
		})
	}
}

// Publish rejects delay metadata that it cannot read, and stores none of the messages.
func TestDelayThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for key, value := range map[string]string{delay.DelayedUntilKey: "tomorrow", delay.DelayedForKey: "an hour"} {
		b := memory.New()
		pub, _ := pair(t, b)
		bad := message.NewMessage("2", nil)
		bad.Metadata.Set(key, value)
		err := pub.Publish("topic", message.NewMessage("1", nil), bad)
		if !errors.Is(err, delayq.ErrInvalid) || !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), value) {
			t.Errorf("%s of %q: %v", key, value, err)
		}
		q, err := delayq.New(t.Context(), "topic", delayq.WithBackend(b))
		must(t, err)
		if s, err := q.Stats(t.Context()); err != nil || s != (delayq.Stats{Activity: s.Activity}) {
			t.Errorf("the queue has %+v, %v", s, err)
		}
	}
}

// comings nacks a message n times and returns the waits before each further hand-out.
func comings(t *testing.T, b backend.Backend, n int, fail func(*message.Message), opts ...delayq.ConsumeOption) (waits []time.Duration) {
	t.Helper()
	topic := topicOf(t)
	pub, sub := pair(t, b, opts...)
	defer func() { must(t, sub.Close()) }()
	must(t, pub.Publish(topic, message.NewMessage("1", nil)))
	messages, err := sub.Subscribe(t.Context(), topic)
	must(t, err)
	msg := <-messages
	for range n {
		nacked := time.Now()
		fail(msg)
		msg.Nack()
		msg = <-messages
		waits = append(waits, time.Since(nacked))
	}
	msg.Ack()
	return waits
}

// Without delay metadata the retry policy says how long a nacked message waits.
func TestNackWaitsByPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New()
		defer func() { must(t, b.Close()) }()
		waits := comings(t, b, 3, func(*message.Message) {}, delayq.Retry(delayq.Delays{time.Second, time.Minute}))
		if got, want := fmt.Sprint(waits), "[1s 1m0s 1m0s]"; got != want {
			t.Errorf("waits %s, want %s", got, want)
		}
	})
}

// delayOnError is Watermill's middleware around a handler that fails.
func delayOnError() func(*message.Message) {
	d := middleware.DelayOnError{InitialInterval: 200 * time.Millisecond, MaxInterval: time.Second, Multiplier: 2}
	h := d.Middleware(func(*message.Message) ([]*message.Message, error) { return nil, errors.New("no") })
	return func(msg *message.Message) { _, _ = h(msg) }
}

// The delay of Watermill's DelayOnError grows, since it is stored with the message.
func TestDelayOnErrorGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New()
		defer func() { must(t, b.Close()) }()
		waits := comings(t, b, 4, delayOnError(), delayq.Retry(delayq.Delays{time.Hour}))
		if got, want := fmt.Sprint(waits), "[200ms 400ms 800ms 1s]"; got != want {
			t.Errorf("waits %s, want %s", got, want)
		}
	})
}

// On each store a message that DelayOnError has delayed comes again, and not before its time.
func TestDelayOnErrorOnEachStore(t *testing.T) {
	onEachStore(t, func(t *testing.T, b backend.Backend) {
		waits := comings(t, b, 2, delayOnError(), delayq.Retry(delayq.Delays{24 * time.Hour}))
		second := 200 * time.Millisecond
		if b.Traits().Supports(delayq.ChangingHeaders) {
			second *= 2
		}
		// The store's clock and this one may differ by their resolution.
		if waits[0] < 199*time.Millisecond || waits[1] < second-time.Millisecond {
			t.Errorf("waits %v, want at least 200ms and %v", waits, second)
		}
	})
}

// A message with a delay comes on each store, and not before its time.
func TestDelayOnEachStore(t *testing.T) {
	onEachStore(t, func(t *testing.T, b backend.Backend) {
		topic := topicOf(t)
		pub, sub := pair(t, b)
		delayed, err := delay.NewPublisher(pub, delay.PublisherConfig{})
		must(t, err)
		began := time.Now()
		ctx := delay.WithContext(t.Context(), delay.For(300*time.Millisecond))
		must(t, delayed.Publish(topic, message.NewMessageWithContext(ctx, "1", nil)))
		messages, err := sub.Subscribe(context.Background(), topic)
		must(t, err)
		(<-messages).Ack()
		if took := time.Since(began); took < 297*time.Millisecond { // stores go by the wall clock, which may be set meanwhile
			t.Errorf("the message came after %v", took)
		}
	})
}
