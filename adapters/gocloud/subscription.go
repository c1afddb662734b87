package gocloud

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"gocloud.dev/pubsub"
	"gocloud.dev/pubsub/batcher"
	"gocloud.dev/pubsub/driver"

	"github.com/delayq/delayq"
)

// SubscriptionOptions is the setup of a subscription.
type SubscriptionOptions struct {
	// Retry says how long a message waits after a Nack, such as delayq.Exponential(time.Second,
	// time.Minute). Nil has it come again at once. The error that the policy gets is nil.
	Retry delayq.RetryPolicy

	// ReceiveBatcherOptions and AckBatcherOptions add to the batching of receives and of acks and
	// nacks: by default up to 1,000 messages in a batch.
	ReceiveBatcherOptions batcher.Options
	AckBatcherOptions     batcher.Options
}

// OpenSubscription returns a subscription to a queue. The caller closes the queue, after the
// subscription's Shutdown. opts may be nil.
func OpenSubscription(q delayq.Queue, opts *SubscriptionOptions) *pubsub.Subscription {
	return openSubscription(q, false, opts)
}

func openSubscription(q delayq.Queue, own bool, opts *SubscriptionOptions) *pubsub.Subscription {
	if opts == nil {
		opts = &SubscriptionOptions{}
	}
	defaults := batcher.Options{MaxBatchSize: 1000}
	return pubsub.NewSubscription(newSubscription(queue{q, own}, opts.Retry),
		defaults.NewMergedOptions(&opts.ReceiveBatcherOptions), defaults.NewMergedOptions(&opts.AckBatcherOptions))
}

type subscription struct {
	queue
	retry delayq.RetryPolicy // nil for no delay

	mu     sync.Mutex
	held   map[*delayq.Delivery]struct{} // neither acked nor nacked
	closed bool
}

var _ driver.Subscription = (*subscription)(nil)

func newSubscription(q queue, retry delayq.RetryPolicy) *subscription {
	return &subscription{queue: q, retry: retry, held: make(map[*delayq.Delivery]struct{})}
}

// receiveWithin is how long ReceiveBatch waits for a message, as its specification asks.
const receiveWithin = time.Second

// ReceiveBatch waits up to a second for messages that are due.
func (s *subscription) ReceiveBatch(ctx context.Context, limit int) ([]*driver.Message, error) {
	waiting, cancel := context.WithTimeout(ctx, receiveWithin)
	defer cancel()
	ds, err := s.Queue.ReceiveBatch(waiting, min(limit, delayq.MaxBatch))
	if err != nil {
		if ctx.Err() == nil && waiting.Err() != nil {
			return nil, nil
		}
		return nil, err
	}
	if !s.hold(ds) {
		return nil, errors.Join(delayq.ErrClosed, s.release(ds))
	}
	ms := make([]*driver.Message, len(ds))
	for i, d := range ds {
		ms[i] = &driver.Message{LoggableID: d.ID, Body: d.Body, Metadata: unescapeKeys(d.Headers), AckID: d, AsFunc: asDelivery(d)}
	}
	return ms, nil
}

func asDelivery(d *delayq.Delivery) func(any) bool {
	return func(i any) bool {
		p, ok := i.(**delayq.Delivery)
		if ok {
			*p = d
		}
		return ok
	}
}

// hold remembers the messages until they are settled. It returns false after Close.
func (s *subscription) hold(ds []*delayq.Delivery) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	for _, d := range ds {
		s.held[d] = struct{}{}
	}
	return true
}

// SendAcks acknowledges messages. It returns nil for those whose lease is over, which come again.
func (s *subscription) SendAcks(ctx context.Context, ids []driver.AckID) error {
	return s.settle(ids, func(ds []*delayq.Delivery) error { return s.AckBatch(ctx, ds) })
}

// CanNack returns true.
func (s *subscription) CanNack() bool { return true }

// SendNacks gives messages back, each to be due again as the retry policy says.
func (s *subscription) SendNacks(ctx context.Context, ids []driver.AckID) error {
	return s.settle(ids, func(ds []*delayq.Delivery) error {
		delays := make(map[time.Duration][]*delayq.Delivery)
		for _, d := range ds {
			var delay time.Duration
			if s.retry != nil {
				delay = s.retry.Delay(d.Attempt, nil)
			}
			delays[delay] = append(delays[delay], d)
		}
		var errs []error
		for delay, ds := range delays {
			errs = append(errs, failures(s.NackBatch(ctx, ds, delay)))
		}
		return errors.Join(errs...)
	})
}

func (s *subscription) settle(ids []driver.AckID, call func([]*delayq.Delivery) error) error {
	ds := make([]*delayq.Delivery, len(ids))
	for i, id := range ids {
		ds[i] = id.(*delayq.Delivery)
	}
	if err := failures(call(ds)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range ds {
		delete(s.held, d)
	}
	return nil
}

// failures leaves out messages that were settled before, or whose lease is over: another call
// would change nothing.
func failures(err error) error {
	var batch *delayq.BatchError
	if !errors.As(err, &batch) {
		return err
	}
	var left []error
	for _, err := range batch.Errs {
		if !errors.Is(err, delayq.ErrSettled) && !errors.Is(err, delayq.ErrLeaseLost) {
			left = append(left, err)
		}
	}
	return errors.Join(left...)
}

// IsRetryable reports whether the call may succeed later. An error that it calls permanent ends
// the subscription.
func (s *subscription) IsRetryable(err error) bool {
	for _, permanent := range []error{delayq.ErrClosed, delayq.ErrNotFound, delayq.ErrInvalid, delayq.ErrUnsupported} {
		if errors.Is(err, permanent) {
			return false
		}
	}
	return true
}

// Close gives back messages that are not settled, and closes a queue that a URL has opened.
func (s *subscription) Close() error {
	s.mu.Lock()
	s.closed = true
	ds := slices.Collect(maps.Keys(s.held))
	s.held = nil
	s.mu.Unlock()
	return errors.Join(s.release(ds), s.close())
}

// releaseWithin bounds the calls of Close, which has no context.
const releaseWithin = 10 * time.Second

func (s *subscription) release(ds []*delayq.Delivery) error {
	ctx, cancel := context.WithTimeout(context.Background(), releaseWithin)
	defer cancel()
	var errs []error
	for part := range slices.Chunk(ds, delayq.MaxBatch) {
		errs = append(errs, failures(s.ReleaseBatch(ctx, part)))
	}
	return errors.Join(errs...)
}
