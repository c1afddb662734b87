package delayq

import (
	"context"

	"github.com/delayq/delayq/backend"
)

// Format is the old name of [Codec].
//
// Deprecated: use Codec.
type Format = Codec

// Decoded is the old name of [TypedHandler].
//
// Deprecated: use TypedHandler.
func Decoded[T any](f Format, h func(ctx context.Context, v T, d *Delivery) error) Handler {
	return TypedHandler(f, h)
}

// Headers is the old name of [KeepingHeaders].
//
// Deprecated: use KeepingHeaders.
const Headers = backend.KeepingHeaders

// Dead is the old name of [Delivery.DeadLetter].
//
// Deprecated: use DeadLetter.
func (d *Delivery) Dead(ctx context.Context, reason string) error { return d.DeadLetter(ctx, reason) }

func (q *queue) DeadBatch(ctx context.Context, ds []*Delivery, reason string) error {
	return q.DeadLetterBatch(ctx, ds, reason)
}
