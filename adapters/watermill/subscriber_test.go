package watermill_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/delayq/delayq"
	adapter "github.com/delayq/delayq/adapters/watermill"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/memory"
	"github.com/delayq/delayq/redisson"
)

// receive takes the message of the topic directly from its queue.
func receive(t *testing.T, b backend.Backend, topic string) *delayq.Delivery {
	t.Helper()
	q, err := delayq.New(t.Context(), adapter.QueueName(topic), delayq.WithBackend(b))
	must(t, err)
	t.Cleanup(func() { must(t, q.Close()) })
	d, err := q.Receive(t.Context())
	must(t, err)
	must(t, d.Ack(t.Context()))
	return d
}

// awaitInFlight waits until a subscription has taken a message of the topic. It returns at once
// where the store does not count.
func awaitInFlight(t *testing.T, b backend.Backend, topic string) {
	t.Helper()
	q, err := delayq.New(t.Context(), adapter.QueueName(topic), delayq.WithBackend(b))
	must(t, err)
	defer func() { must(t, q.Close()) }()
	for deadline := time.Now().Add(time.Minute); q.Supports(delayq.CountingScheduled); time.Sleep(time.Millisecond) {
		s, err := q.Stats(t.Context())
		must(t, err)
		if s.InFlight == 1 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the queue has %+v", s)
		}
	}
}

// A subscription that ends gives back the message that nobody took from its channel, at once and
// without a counted attempt.
func TestStopGivesBackMessageThatNobodyTook(t *testing.T) {
	onEachStore(t, func(t *testing.T, b backend.Backend) {
		topic := topicOf(t)
		pub, sub := pair(t, b)
		messages, err := sub.Subscribe(t.Context(), topic)
		must(t, err)
		must(t, pub.Publish(topic, message.NewMessage("1", nil)))
		awaitInFlight(t, b, topic)
		must(t, sub.Close())
		if _, open := <-messages; open {
			t.Error("the channel is open after Close")
		}
		if d := receive(t, b, topic); d.Attempt != 1 {
			t.Errorf("attempt %d of a message that nobody took", d.Attempt)
		}
	})
}

// When the time of Drain is over, a message that was taken and not acked ends its context, and is
// given back without a counted attempt.
func TestStopGivesBackMessageThatIsNotAcked(t *testing.T) {
	onEachStore(t, func(t *testing.T, b backend.Backend) {
		topic := topicOf(t)
		pub, sub := pair(t, b, delayq.Drain(0))
		ctx, stop := context.WithCancel(t.Context())
		messages, err := sub.Subscribe(ctx, topic)
		must(t, err)
		must(t, pub.Publish(topic, message.NewMessage("1", nil)))
		msg := <-messages
		if err := msg.Context().Err(); err != nil {
			t.Errorf("the message's context ended before the stop: %v", err)
		}
		stop()
		<-msg.Context().Done()
		if _, open := <-messages; open {
			t.Error("another message after the stop")
		}
		if d := receive(t, b, topic); d.Attempt != 1 {
			t.Errorf("attempt %d of a message that a stop gave back", d.Attempt)
		}
	})
}

// A message that is being handled when the subscriber closes can still be acked.
func TestCloseWaitsForAck(t *testing.T) {
	t.Parallel()
	b := memory.New()
	pub, sub := pair(t, b)
	messages, err := sub.Subscribe(t.Context(), "topic")
	must(t, err)
	must(t, pub.Publish("topic", message.NewMessage("1", nil)))
	msg := <-messages
	closed := make(chan error)
	go func() { closed <- sub.Close() }()
	for {
		if _, err := sub.Subscribe(t.Context(), "topic"); errors.Is(err, delayq.ErrClosed) {
			break // Close has begun
		}
	}
	if err := msg.Context().Err(); err != nil {
		t.Errorf("the message's context ended: %v", err)
	}
	msg.Ack()
	must(t, <-closed)
	q, err := delayq.New(t.Context(), "topic", delayq.WithBackend(b))
	must(t, err)
	if s, err := q.Stats(t.Context()); err != nil || s != (delayq.Stats{Activity: s.Activity}) {
		t.Errorf("the queue has %+v, %v", s, err)
	}
}

// With Workers(n), n messages are in hand at a time.
func TestWorkers(t *testing.T) {
	t.Parallel()
	pub, sub := pair(t, memory.New(), delayq.Workers(3))
	messages, err := sub.Subscribe(t.Context(), "topic")
	must(t, err)
	must(t, pub.Publish("topic", message.NewMessage("1", nil), message.NewMessage("2", nil), message.NewMessage("3", nil)))
	all := []*message.Message{<-messages, <-messages, <-messages}
	for _, msg := range all {
		msg.Ack()
	}
}

// A handler publishes the message that it handles again. Its ack deletes the old one alone.
func TestPublishOwnMessageAgain(t *testing.T) {
	onEachStore(t, func(t *testing.T, b backend.Backend) {
		topic := topicOf(t)
		pub, sub := pair(t, b)
		messages, err := sub.Subscribe(t.Context(), topic)
		must(t, err)
		must(t, pub.Publish(topic, message.NewMessage("1", []byte("body"))))
		for range 3 {
			msg := <-messages
			if msg.UUID != "1" || string(msg.Payload) != "body" {
				t.Errorf("message %q with %q", msg.UUID, msg.Payload)
			}
			must(t, pub.Publish(topic, msg))
			msg.Ack()
		}
		(<-messages).Ack()
	})
}

// After MaxAttempts nacks a message is a dead letter of the topic's queue.
func TestDeadLetter(t *testing.T) {
	t.Parallel()
	b := memory.New()
	pub, sub := pair(t, b, delayq.MaxAttempts(2), delayq.Retry(delayq.Delays{0}))
	messages, err := sub.Subscribe(t.Context(), "a topic")
	must(t, err)
	must(t, pub.Publish("a topic", message.NewMessage("1", nil)))
	for range 2 {
		(<-messages).Nack()
	}
	q, err := delayq.New(t.Context(), adapter.QueueName("a topic"), delayq.WithBackend(b))
	must(t, err)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		letters, _, err := q.Dead().List(t.Context(), "", 10)
		must(t, err)
		if len(letters) == 1 && letters[0].Headers[adapter.UUIDHeader] == "1" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("dead letters %+v", letters)
		}
	}
}

// Neither a publisher nor a subscriber works after Close, or without a backend with headers.
func TestMisuse(t *testing.T) {
	t.Parallel()
	pub, sub := pair(t, memory.New())
	must(t, pub.Close())
	must(t, sub.Close())
	if err := pub.Publish("topic", message.NewMessage("1", nil)); !errors.Is(err, delayq.ErrClosed) {
		t.Errorf("publish after Close: %v", err)
	}
	if _, err := sub.Subscribe(t.Context(), "topic"); !errors.Is(err, delayq.ErrClosed) {
		t.Errorf("subscribe after Close: %v", err)
	}
	for _, c := range []struct {
		config adapter.Config
		want   error
	}{
		{adapter.Config{}, delayq.ErrInvalid},
		{adapter.Config{Backend: memory.New(), Consume: []delayq.ConsumeOption{delayq.Workers(0)}}, delayq.ErrInvalid},
		{adapter.Config{Backend: redisson.New(nil)}, delayq.ErrUnsupported},
	} {
		if _, err := adapter.NewPublisher(c.config); !errors.Is(err, c.want) {
			t.Errorf("NewPublisher: %v, want %v", err, c.want)
		}
		if _, err := adapter.NewSubscriber(c.config); !errors.Is(err, c.want) {
			t.Errorf("NewSubscriber: %v, want %v", err, c.want)
		}
	}
}
