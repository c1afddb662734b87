package gocloud

import (
	"context"
	"errors"
	"time"

	"gocloud.dev/gcerrors"
	"gocloud.dev/pubsub"
	"gocloud.dev/pubsub/batcher"
	"gocloud.dev/pubsub/driver"

	"github.com/delayq/delayq"
)

// TopicOptions is the setup of a topic.
type TopicOptions struct {
	// BatcherOptions adds to the batching of sends: by default up to 1,000 messages in a batch, and
	// four batches at a time.
	BatcherOptions batcher.Options
}

// OpenTopic returns a topic that sends to a queue. The caller closes the queue, after the topic's
// Shutdown. opts may be nil.
func OpenTopic(q delayq.Queue, opts *TopicOptions) *pubsub.Topic { return openTopic(q, false, opts) }

func openTopic(q delayq.Queue, own bool, opts *TopicOptions) *pubsub.Topic {
	if opts == nil {
		opts = &TopicOptions{}
	}
	defaults := batcher.Options{MaxBatchSize: 1000, MaxHandlers: 4}
	return pubsub.NewTopic(&topic{queue{q, own}}, defaults.NewMergedOptions(&opts.BatcherOptions))
}

// After returns a function for Message.BeforeSend that makes the message due that long from its
// arrival at the store: 0 to a hundred years.
func After(d time.Duration) func(as func(any) bool) error {
	return beforeSend(delayq.After(d))
}

// At returns a function for Message.BeforeSend that makes the message due at t, by the store's
// clock. A time in the past is due at once.
func At(t time.Time) func(as func(any) bool) error {
	return beforeSend(delayq.At(t))
}

func beforeSend(set delayq.PushOption) func(as func(any) bool) error {
	return func(as func(any) bool) error {
		var m *delayq.Message
		if !as(&m) {
			return errors.New("the topic is not one of delayq's: it cannot delay a message")
		}
		return set(m)
	}
}

type topic struct{ queue }

var _ driver.Topic = (*topic)(nil)

// A sending is the state of a message while SendBatch is repeated for it. It is kept in the
// message's AckID, which a topic has no other use for.
type sending struct {
	message delayq.Message
	tried   bool
	stored  bool
}

func (s *sending) as(i any) bool {
	p, ok := i.(**delayq.Message)
	if ok {
		*p = &s.message
	}
	return ok
}

// SendBatch stores messages. Called again with the same messages, it sends those that are not
// stored.
func (t *topic) SendBatch(ctx context.Context, ms []*driver.Message) error {
	var batch []*sending
	for _, m := range ms {
		s, err := prepare(m)
		if err != nil {
			return err
		}
		if !s.stored {
			batch = append(batch, s)
		}
	}
	if err := t.push(ctx, batch); err != nil {
		return err
	}
	for _, m := range ms {
		if m.AfterSend == nil {
			continue
		}
		if err := m.AfterSend(m.AckID.(*sending).as); err != nil {
			return err
		}
	}
	return nil
}

// prepare calls BeforeSend, the first time.
func prepare(m *driver.Message) (*sending, error) {
	if s, again := m.AckID.(*sending); again {
		return s, nil
	}
	s := &sending{message: delayq.Message{Body: m.Body, Headers: escapeKeys(m.Metadata)}}
	if m.BeforeSend != nil {
		if err := m.BeforeSend(s.as); err != nil {
			return nil, err
		}
	}
	m.AckID = s
	return s, nil
}

func (t *topic) push(ctx context.Context, batch []*sending) error {
	ms := make([]delayq.Message, len(batch))
	for i, s := range batch {
		ms[i] = s.message
	}
	ids, err := t.PushBatch(ctx, ms)
	var each *delayq.BatchError
	if err != nil && !errors.As(err, &each) {
		return err
	}
	var failed error
	for i, s := range batch {
		var err error
		if each != nil {
			err = each.Errs[i]
		}
		if s.stored = err == nil || s.tried && errors.Is(err, delayq.ErrDuplicate); !s.stored {
			failed = worse(failed, err)
		}
		s.tried = true
		if t.Supports(delayq.OwnIDs) || s.stored {
			s.message.ID = ids[i]
		}
	}
	return failed
}

// worse prefers an error that must not be tried again.
func worse(a, b error) error {
	if a == nil || retryable(a) {
		return b
	}
	return a
}

// IsRetryable reports whether the store may take the messages later.
func (t *topic) IsRetryable(err error) bool { return retryable(err) }

func retryable(err error) bool {
	return errors.Is(err, delayq.ErrUnavailable) || errors.Is(err, delayq.ErrOutcomeUnknown)
}

// Close closes a queue that a URL has opened.
func (t *topic) Close() error { return t.close() }

// queue has what a topic and a subscription share.
type queue struct {
	delayq.Queue
	own bool // it is closed with the topic or the subscription
}

func (q queue) close() error {
	if !q.own {
		return nil
	}
	return q.Queue.Close()
}

func (q queue) As(i any) bool {
	p, ok := i.(*delayq.Queue)
	if ok {
		*p = q.Queue
	}
	return ok
}

func (queue) ErrorAs(err error, i any) bool {
	switch i.(type) {
	case **delayq.OpError, **delayq.InvalidError, **delayq.UnsupportedError:
		return errors.As(err, i)
	}
	return false
}

func (queue) ErrorCode(err error) gcerrors.ErrorCode {
	for _, c := range []struct {
		err  error
		code gcerrors.ErrorCode
	}{
		{delayq.ErrNotFound, gcerrors.NotFound},
		{delayq.ErrDuplicate, gcerrors.AlreadyExists},
		{delayq.ErrInvalid, gcerrors.InvalidArgument},
		{delayq.ErrUnsupported, gcerrors.Unimplemented},
		{delayq.ErrFull, gcerrors.ResourceExhausted},
		{delayq.ErrClosed, gcerrors.FailedPrecondition},
		{context.Canceled, gcerrors.Canceled},
		{context.DeadlineExceeded, gcerrors.DeadlineExceeded},
	} {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	return gcerrors.Unknown
}
