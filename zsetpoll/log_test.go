package zsetpoll_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/zsetpoll"
)

// TestSubscriptionLogsToTheQueuesLogger has the subscription fail.
func TestSubscriptionLogsToTheQueuesLogger(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.Private())
	client := server.Client(t, func(o *redis.Options) { o.DialerRetries, o.MaxRetries = 1, -1 })
	b := zsetpoll.New(client)
	defer func() { must(t, b.Close()) }()
	var log redistest.Log
	q, err := b.Open(t.Context(), t.Name(), backend.Options{Logger: log.Logger().With("queue", t.Name())})
	must(t, err)
	server.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, _ = q.Receive(ctx, 1, longLease)
	await(t, "the subscription's failure in the log", func() bool {
		return log.Count("subscribing to wake-ups failed", "queue="+t.Name()) > 0
	})
}
