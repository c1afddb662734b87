package testenv

import (
	"context"
	"errors"
	"os"
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
)

// RetryOnBusyRabbit calls open again while it fails as on a broker without enough processor time: a
// connection takes longer than it may, heartbeats stay away, or a queue's leader does not start in
// time (cluster_not_formed). It gives up after 30 calls, or when ctx ends.
func RetryOnBusyRabbit[T any](ctx context.Context, open func() (T, error)) (value T, err error) {
	for range 30 {
		if value, err = open(); !rabbitIsBusy(err) || ctx.Err() != nil {
			break
		}
	}
	return value, err
}

func rabbitIsBusy(err error) bool {
	var failure *amqp.Error
	if errors.As(err, &failure) {
		return slices.Contains([]int{amqp.InternalError, amqp.FrameError, amqp.ChannelError}, failure.Code)
	}
	return errors.Is(err, backend.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}
