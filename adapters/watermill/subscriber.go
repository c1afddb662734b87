package watermill

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/components/delay"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/delayq/delayq"
)

// Subscriber hands out the messages of topics as they become due. It is safe for concurrent use.
type Subscriber struct {
	config  Config
	closing chan struct{}  // closed when Close begins
	running sync.WaitGroup // subscriptions

	mu     sync.Mutex
	closed bool
	err    error // of subscriptions that ended
}

var _ message.Subscriber = (*Subscriber)(nil)

// NewSubscriber returns a subscriber. It connects to nothing. It returns [delayq.ErrInvalid]
// without a backend and for a bad option, and [delayq.ErrUnsupported] where the backend lacks
// [delayq.KeepingHeaders].
func NewSubscriber(c Config) (*Subscriber, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("new subscriber: %w", err)
	}
	return &Subscriber{config: c, closing: make(chan struct{})}, nil
}

// Subscribe opens the queue of a topic, and returns a channel of its messages. Each message must be
// acked or nacked. Until then it is leased, and the lease is renewed. The context of a message ends
// when it is settled, when its lease is lost, and when a stop takes longer than [delayq.Drain].
//
// The subscription ends with ctx, and with Close. Messages that nobody has taken from the channel
// are then given back untouched. Those that were taken have the time of delayq.Drain, 30 s by
// default, to be acked or nacked, and are given back untouched after that. The channel is closed at
// the end. While the store cannot be reached, the subscription goes on and tries again.
func (s *Subscriber) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	if !s.begin() {
		return nil, fmt.Errorf("subscribe to topic %q: %w", topic, delayq.ErrClosed)
	}
	q, err := delayq.New(ctx, QueueName(topic), s.config.options()...)
	if err != nil {
		s.running.Done()
		return nil, fmt.Errorf("subscribe to topic %q: %w", topic, err)
	}
	sub := &subscription{queue: q, out: make(chan *message.Message)}
	go func() {
		defer s.running.Done()
		defer close(sub.out)
		s.ended(sub.run(ctx, s.closing, s.config.Consume))
	}()
	return sub.out, nil
}

// begin counts a subscription as running. It returns false after Close.
func (s *Subscriber) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.running.Add(1)
	}
	return !s.closed
}

func (s *Subscriber) ended(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = errors.Join(s.err, err)
}

// Close ends all subscriptions, waits until their channels are closed, and returns the errors with
// which they ended. The backend stays open. A second Close does nothing.
func (s *Subscriber) Close() error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.closing)
	}
	s.mu.Unlock()
	s.running.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.err
	s.err = nil
	return err
}

// A subscription is one call of Subscribe.
type subscription struct {
	queue    delayq.Queue
	out      chan *message.Message
	stopping <-chan struct{} // closed when no more messages are handed out
}

func (s *subscription) run(ctx context.Context, closing <-chan struct{}, opts []delayq.ConsumeOption) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-closing:
			stop()
		case <-ctx.Done():
		}
	}()
	s.stopping = ctx.Done()
	return errors.Join(s.queue.Consume(ctx, s.handle, opts...), s.queue.Close())
}

// handle hands out a message and waits until it is settled.
func (s *subscription) handle(ctx context.Context, d *delayq.Delivery) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	msg := decode(d)
	msg.SetContext(ctx)
	asked := delayOf(msg)
	select {
	case s.out <- msg:
	case <-s.stopping:
		return d.Release(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-msg.Acked():
		return nil
	case <-msg.Nacked():
		if delayOf(msg) == asked {
			return errNacked
		}
		return s.nackAfter(ctx, d, msg.Metadata)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var errNacked = errors.New("message was nacked")

// delayOf returns the delay metadata of a message.
func delayOf(msg *message.Message) [2]string {
	return [2]string{msg.Metadata.Get(delay.DelayedUntilKey), msg.Metadata.Get(delay.DelayedForKey)}
}

// nackAfter nacks a message with the delay that its handler put into the metadata, and stores the
// delay with it where the backend can.
func (s *subscription) nackAfter(ctx context.Context, d *delayq.Delivery, md message.Metadata) error {
	until, after, err := due(md)
	if err != nil {
		return fmt.Errorf("%w: %w", errNacked, err)
	}
	if !until.IsZero() {
		after = max(0, time.Until(until))
	}
	if !s.queue.Supports(delayq.ChangingHeaders) {
		return delayq.RetryAfter(errNacked, after)
	}
	headers := map[string]string{delay.DelayedUntilKey: md.Get(delay.DelayedUntilKey), delay.DelayedForKey: md.Get(delay.DelayedForKey)}
	for k, v := range d.Headers {
		if _, changed := headers[k]; !changed {
			headers[k] = v
		}
	}
	return d.Nack(ctx, after, delayq.NackHeaders(headers))
}
