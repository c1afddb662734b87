package watermill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/delayq/delayq"
)

// Publisher pushes messages to the queues of their topics. It is safe for concurrent use.
type Publisher struct {
	config Config

	mu     sync.Mutex
	queues map[string]delayq.Queue // by topic; nil after Close
}

var _ message.Publisher = (*Publisher)(nil)

// NewPublisher returns a publisher. It connects to nothing. It returns [delayq.ErrInvalid] without
// a backend, and [delayq.ErrUnsupported] where the backend lacks [delayq.KeepingHeaders].
func NewPublisher(c Config) (*Publisher, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("new publisher: %w", err)
	}
	return &Publisher{config: c, queues: make(map[string]delayq.Queue)}, nil
}

// Publish stores messages, each due when its metadata say, and at once without delay metadata. It
// returns when the store has them, or when the context of the first message ends. It opens a topic
// at its first message, and keeps it open until Close.
//
// When it fails, some of the messages may be stored, and publishing them again stores these twice.
// It returns [delayq.ErrInvalid] for delay metadata that cannot be read, and stores nothing then.
// The other errors are those of delayq's Push.
func (p *Publisher) Publish(topic string, messages ...*message.Message) error {
	if len(messages) == 0 {
		return nil
	}
	batch := make([]delayq.Message, len(messages))
	for i, msg := range messages {
		var err error
		if batch[i], err = encode(msg); err != nil {
			return fmt.Errorf("publish message %q to topic %q: %w", msg.UUID, topic, err)
		}
	}
	ctx := messages[0].Context()
	q, err := p.queue(ctx, topic)
	if err == nil {
		err = push(ctx, q, batch)
	}
	if err != nil {
		return fmt.Errorf("publish to topic %q: %w", topic, err)
	}
	return nil
}

// push sends a single message by Push, which shares its round trip with those of other goroutines.
func push(ctx context.Context, q delayq.Queue, batch []delayq.Message) error {
	if len(batch) == 1 {
		_, err := q.Push(ctx, batch[0].Body, func(m *delayq.Message) error {
			*m = batch[0]
			return nil
		})
		return err
	}
	for part := range slices.Chunk(batch, delayq.MaxBatch) {
		if _, err := q.PushBatch(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// queue returns the open queue of a topic.
func (p *Publisher) queue(ctx context.Context, topic string) (delayq.Queue, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queues == nil {
		return nil, delayq.ErrClosed
	}
	if q := p.queues[topic]; q != nil {
		return q, nil
	}
	q, err := delayq.New(ctx, QueueName(topic), p.config.options()...)
	if err != nil {
		return nil, err
	}
	p.queues[topic] = q
	return q, nil
}

// Close closes the queues that Publish has opened. The backend stays open. A Publish after Close
// returns [delayq.ErrClosed]. A second Close does nothing.
func (p *Publisher) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, q := range p.queues {
		errs = append(errs, q.Close())
	}
	p.queues = nil
	return errors.Join(errs...)
}
