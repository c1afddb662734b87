package testenv

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"testing"

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

// WarmRabbit opens another queue of a broker, patiently, and closes it: a broker that has just started on a busy machine
// may take longer to reply than the program under test waits.
func WarmRabbit[T io.Closer](tb testing.TB, open func() (T, error)) {
	tb.Helper()
	q, err := RetryOnBusyRabbit(tb.Context(), open)
	if err == nil {
		err = q.Close()
	}
	if err != nil {
		tb.Fatal(err)
	}
}

func rabbitIsBusy(err error) bool {
	var failure *amqp.Error
	if errors.As(err, &failure) {
		return slices.Contains([]int{amqp.InternalError, amqp.FrameError, amqp.ChannelError}, failure.Code)
	}
	return errors.Is(err, backend.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}
