package recipes_test

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

import (
	"github.com/delayq/delayq"
	_ "github.com/delayq/delayq/zsetpoll"
)

func gettingStarted(ctx context.Context, cancelIfUnpaid func(ctx context.Context, order string) error) error {
	q, err := delayq.New(ctx, "orders", delayq.InMemory())
	if err != nil {
		return err
	}
	defer q.Close()

	_, err = q.Push(ctx, []byte("17"), delayq.ID("payment-timeout-17"), delayq.After(30*time.Minute))
	if err != nil {
		return err
	}

	err = q.Reschedule(ctx, "payment-timeout-17", time.Now().Add(time.Hour))
	if err != nil {
		return err
	}
	err = q.Consume(ctx, func(ctx context.Context, d *delayq.Delivery) error {
		return cancelIfUnpaid(ctx, string(d.Body))
	}, delayq.Workers(8), delayq.MaxAttempts(10), delayq.Timeout(time.Minute))
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	err = q.Cancel(ctx, "payment-timeout-17")
	return err
}

func TestGettingStarted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		start := time.Now()
		err := gettingStarted(ctx, func(_ context.Context, order string) error {
			if waited := time.Since(start); order != "17" || waited != time.Hour {
				t.Errorf("order %q after %v", order, waited)
			}
			stop()
			return nil
		})
		if !errors.Is(err, delayq.ErrNotFound) { // Cancel comes after the message is done
			t.Errorf("gettingStarted: %v", err)
		}
	})
}

// TestOpenAsksForAServer runs the lines on Redis without one: the URL and the import are right when
// the server is all that is missing.
func TestOpenAsksForAServer(t *testing.T) {
	t.Parallel()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	q, err := delayq.Open(ctx, "zsetpoll://localhost:6379/orders", delayq.Require(delayq.Cancelling))
	if err == nil {
		_ = q.Close()
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Open: %v", err)
	}
}
