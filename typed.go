package delayq

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/valid"
)

// Codec turns values into bodies and back. Its methods are called from many goroutines.
type Codec interface {
	Marshal(v any) ([]byte, error)
	Unmarshal(body []byte, v any) error
}

// JSON is the codec of encoding/json.
var JSON Codec = jsonCodec{}

type jsonCodec struct{}

func (jsonCodec) Marshal(v any) ([]byte, error)      { return json.Marshal(v) }
func (jsonCodec) Unmarshal(body []byte, v any) error { return json.Unmarshal(body, v) }

// TypedQueue is a queue of values of one type, as [Typed] returns it. It is safe for concurrent
// use. The queue below stays the caller's, to close, to count, to cancel.
type TypedQueue[T any] struct {
	queue Queue
	codec Codec
}

// Typed returns a view of q whose messages are values of type T, encoded by a codec. One view may
// push messages for another, as long as the codec reads one type from the other.
func Typed[T any](q Queue, c Codec) *TypedQueue[T] { return &TypedQueue[T]{queue: q, codec: c} }

// Push is [Pusher.Push] of a value. When the codec cannot write it, Push returns an error and
// stores nothing.
func (t *TypedQueue[T]) Push(ctx context.Context, v T, opts ...PushOption) (id string, err error) {
	if err := t.valid(); err != nil {
		return "", opError("push", "", "", err)
	}
	body, err := t.codec.Marshal(v)
	if err != nil {
		return "", opError("push", "", "", fmt.Errorf("encoding a %T: %w", v, err))
	}
	return t.queue.Push(ctx, body, opts...)
}

// Consume is [Consumer.Consume] with the value as a further argument. A message whose body the
// codec cannot read becomes a dead letter at once, with the reason, and h is not called.
func (t *TypedQueue[T]) Consume(ctx context.Context, h func(ctx context.Context, v T, d *Delivery) error, opts ...ConsumeOption) error {
	if err := t.valid(); err != nil {
		return opError("consume", "", "", err)
	}
	if h == nil {
		return t.queue.Consume(ctx, nil, opts...)
	}
	return t.queue.Consume(ctx, TypedHandler(t.codec, h), opts...)
}

func (t *TypedQueue[T]) valid() error {
	if t.queue == nil || t.codec == nil {
		return backend.Invalid("Typed", valid.Described("nil"), "a queue, and a codec such as JSON")
	}
	return nil
}

// TypedHandler returns a handler that decodes the body and calls h, for a [Router] or middleware.
// It treats unreadable bodies as [TypedQueue.Consume] does.
func TypedHandler[T any](c Codec, h func(ctx context.Context, v T, d *Delivery) error) Handler {
	return func(ctx context.Context, d *Delivery) error {
		var v T
		if err := c.Unmarshal(d.Body, &v); err != nil {
			return fmt.Errorf("%w: decoding a %T: %w", ErrDeadLetter, v, err)
		}
		return h(ctx, v, d)
	}
}
