package gocloud

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"gocloud.dev/gcerrors"
	"gocloud.dev/pubsub"
	"gocloud.dev/pubsub/driver"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/memory"
	"github.com/delayq/delayq/zsetpoll"
)

// pair returns a topic and a subscription of one queue, and a function that shuts them down.
func pair(t *testing.T, q delayq.Queue, opts *SubscriptionOptions) (*pubsub.Topic, *pubsub.Subscription, func()) {
	t.Helper()
	topic, sub := OpenTopic(q, nil), OpenSubscription(q, opts)
	return topic, sub, func() {
		t.Helper()
		must(t, topic.Shutdown(context.Background()))
		must(t, sub.Shutdown(context.Background()))
	}
}

func receive(t *testing.T, s *pubsub.Subscription) *pubsub.Message {
	t.Helper()
	m, err := s.Receive(t.Context())
	must(t, err)
	return m
}

// inBubble runs a test in virtual time, which shows to the nanosecond when a message comes.
func inBubble(t *testing.T, test func(t *testing.T, b backend.Backend)) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New()
		t.Cleanup(func() { must(t, b.Close()) })
		test(t, b)
	})
}

func TestDelay(t *testing.T) {
	for name, c := range map[string]struct {
		delay func() func(func(any) bool) error
		want  time.Duration
	}{
		"none":           {func() func(func(any) bool) error { return nil }, 0},
		"after":          {func() func(func(any) bool) error { return After(time.Hour) }, time.Hour},
		"at":             {func() func(func(any) bool) error { return At(time.Now().Add(time.Hour)) }, time.Hour},
		"at in the past": {func() func(func(any) bool) error { return At(time.Now().Add(-time.Hour)) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b backend.Backend) {
				topic, sub, shutdown := pair(t, newQueue(t, b), nil)
				defer shutdown()
				began := time.Now()
				must(t, topic.Send(t.Context(), &pubsub.Message{Body: []byte("1"), BeforeSend: c.delay()}))
				receive(t, sub).Ack()
				if took := time.Since(began); took != c.want {
					t.Errorf("the message came after %v, want %v", took, c.want)
				}
			})
		})
	}
}

// A delay that no store has is an error of Send.
func TestBadDelay(t *testing.T) {
	t.Parallel()
	topic, _, shutdown := pair(t, newQueue(t, memory.New()), nil)
	defer shutdown()
	for _, before := range []func(func(any) bool) error{After(-time.Second), At(time.Unix(-1, 0))} {
		err := topic.Send(t.Context(), &pubsub.Message{BeforeSend: before})
		if !errors.Is(err, delayq.ErrInvalid) || gcerrors.Code(err) != gcerrors.InvalidArgument {
			t.Errorf("a bad delay: %v", err)
		}
	}
}

// A nacked message waits as long as the policy says for its attempt.
func TestNackDelay(t *testing.T) {
	inBubble(t, func(t *testing.T, b backend.Backend) {
		topic, sub, shutdown := pair(t, newQueue(t, b), &SubscriptionOptions{Retry: delayq.Delays{time.Second, time.Minute}})
		defer shutdown()
		must(t, topic.Send(t.Context(), &pubsub.Message{}))
		var waits []time.Duration
		m := receive(t, sub)
		for range 3 {
			nacked := time.Now()
			m.Nack()
			m = receive(t, sub)
			waits = append(waits, time.Since(nacked))
		}
		m.Ack()
		if got, want := fmt.Sprint(waits), "[1s 1m0s 1m0s]"; got != want {
			t.Errorf("waits %s, want %s", got, want)
		}
	})
}

// An ack after the end of the lease does not end the subscription. The message comes again.
func TestLateAck(t *testing.T) {
	inBubble(t, func(t *testing.T, b backend.Backend) {
		topic, sub, shutdown := pair(t, newQueue(t, b, delayq.WithLease(time.Minute)), nil)
		defer shutdown()
		must(t, topic.Send(t.Context(), &pubsub.Message{}))
		m := receive(t, sub)
		time.Sleep(2 * time.Minute)
		m.Ack()
		m = receive(t, sub)
		var d *delayq.Delivery
		if !m.As(&d) || d.Attempt != 2 {
			t.Errorf("the message that was acked late came as %v", d)
		}
		m.Ack()
	})
}

// Shutdown gives back messages that were fetched and not settled, at once and without a counted
// attempt.
func TestShutdownGivesBackUntouched(t *testing.T) {
	onEachStore(t, func(t *testing.T, b backend.Backend) {
		q := newQueue(t, b)
		topic, sub := OpenTopic(q, nil), newSubscription(queue{q, false}, nil)
		for range 5 {
			must(t, topic.Send(t.Context(), &pubsub.Message{}))
		}
		must(t, topic.Shutdown(t.Context()))
		for fetched := 0; fetched < 5; {
			ms, err := sub.ReceiveBatch(t.Context(), 5-fetched)
			must(t, err)
			fetched += len(ms)
		}
		must(t, sub.Close())
		if _, err := sub.ReceiveBatch(t.Context(), 1); !errors.Is(err, delayq.ErrClosed) {
			t.Errorf("a receive after Close: %v", err)
		}
		for range 5 {
			d, err := q.Receive(t.Context())
			must(t, err)
			if d.Attempt != 1 {
				t.Errorf("attempt %d of a message that nobody handled", d.Attempt)
			}
			must(t, d.Ack(t.Context()))
		}
	})
}

// A subscription receives nothing, again and again, while no message is due.
func TestReceiveOfEmptyQueue(t *testing.T) {
	inBubble(t, func(t *testing.T, b backend.Backend) {
		sub := newSubscription(queue{newQueue(t, b), false}, nil)
		began := time.Now()
		if ms, err := sub.ReceiveBatch(t.Context(), 10); len(ms) != 0 || err != nil || time.Since(began) != time.Second {
			t.Errorf("%d messages, %v, after %v; want none after 1s", len(ms), err, time.Since(began))
		}
		must(t, sub.Close())
	})
}

// half stores every second message of its first batch, and is unavailable for the others.
type half struct {
	delayq.Queue
	sizes []int // of the batches
}

func (h *half) PushBatch(ctx context.Context, ms []delayq.Message) ([]string, error) {
	if h.sizes = append(h.sizes, len(ms)); len(h.sizes) > 1 {
		return h.Queue.PushBatch(ctx, ms)
	}
	ids, errs := make([]string, len(ms)), make([]error, len(ms))
	for i, m := range ms {
		if i%2 == 1 {
			ids[i], errs[i] = fmt.Sprint("id ", i), delayq.ErrUnavailable
			continue
		}
		var err error
		if ids[i], err = h.Push(ctx, m.Body); err != nil {
			return nil, err
		}
	}
	return ids, &delayq.BatchError{Errs: errs}
}

// A batch of which the store took a part is sent again without that part.
func TestSendOfHalfBatchAgain(t *testing.T) {
	t.Parallel()
	q := newQueue(t, memory.New())
	store := &half{Queue: q}
	dt := &topic{queue{store, false}}
	var ms []*driver.Message
	for _, body := range []string{"0", "1", "2", "3"} {
		ms = append(ms, &driver.Message{Body: []byte(body)})
	}
	err := dt.SendBatch(t.Context(), ms)
	if !dt.IsRetryable(err) {
		t.Fatalf("SendBatch of a store that is unavailable: %v", err)
	}
	must(t, dt.SendBatch(t.Context(), ms))
	got := make(map[string]string)
	for range ms {
		d, err := q.Receive(t.Context())
		must(t, err)
		got[string(d.Body)] = d.ID
	}
	if fmt.Sprint(store.sizes) != "[4 2]" {
		t.Errorf("batches of %v messages, want 4, then the 2 that are missing", store.sizes)
	}
	if s, err := q.Stats(t.Context()); err != nil || s.InFlight != 4 || s.Ready != 0 || len(got) != 4 || got["1"] != "id 1" {
		t.Errorf("messages %v, the queue has %+v, %v", got, s, err)
	}
}

// awaitEmpty waits until the acks, which gocloud sends in the background, have reached the store.
func awaitEmpty(t *testing.T, q delayq.Queue) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		s, err := q.Stats(t.Context())
		must(t, err)
		if s == (delayq.Stats{Activity: s.Activity}) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the queue has %+v", s)
		}
	}
}

// Send and Receive go on when the server comes back.
func TestServerThatRestarts(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.Private(), testenv.AOF(), testenv.Directive("appendfsync", "always"))
	b := zsetpoll.New(server.Client(t))
	t.Cleanup(func() { must(t, b.Close()) })
	q := newQueue(t, b)
	topic, sub, shutdown := pair(t, q, nil)
	defer shutdown()
	must(t, topic.Send(t.Context(), &pubsub.Message{Body: []byte("before")}))
	receive(t, sub).Ack()
	awaitEmpty(t, q)
	received := make(chan *pubsub.Message)
	go func() {
		m, err := sub.Receive(t.Context())
		if err != nil {
			t.Errorf("receive: %v", err)
		}
		received <- m
	}()
	server.Kill()
	sent := make(chan error)
	go func() { sent <- topic.Send(t.Context(), &pubsub.Message{Body: []byte("while it was down")}) }()
	server.Restart()
	must(t, <-sent)
	if m := <-received; m != nil {
		if string(m.Body) != "while it was down" {
			t.Errorf("got %q", m.Body)
		}
		m.Ack()
	}
}
