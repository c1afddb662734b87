package recipes_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/delayq/delayq"
	_ "github.com/delayq/delayq/redisson"
)

func sharedWithJava(ctx context.Context, cancelUnpaid func(ctx context.Context, order string) error) error {
	q, err := delayq.Open(ctx, "redisson://localhost:6379/orders?codec=string")
	if err != nil {
		return err
	}
	defer q.Close()

	if _, err := q.Push(ctx, []byte("order 18"), delayq.After(30*time.Minute)); err != nil {
		return err
	}
	return q.Consume(ctx, func(ctx context.Context, d *delayq.Delivery) error {
		return cancelUnpaid(ctx, string(d.Body))
	})
}

// The URL and the import are right when the server is all that is missing.
func TestSharedWithJavaAsksForAServer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := sharedWithJava(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("sharedWithJava: %v", err)
	}
}
