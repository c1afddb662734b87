package zsetpoll_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/zsetpoll"
)

// A journal collects a logger's output.
type journal struct {
	mu    sync.Mutex
	bytes bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.bytes.Write(b)
}

func (j *journal) has(text string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Contains(j.bytes.String(), text)
}

// TestSubscriptionLogsToTheQueuesLogger has the subscription fail.
func TestSubscriptionLogsToTheQueuesLogger(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.Private())
	client := server.Client(t, func(o *redis.Options) { o.DialerRetries, o.MaxRetries = 1, -1 })
	b := zsetpoll.New(client)
	defer func() { must(t, b.Close()) }()
	var log journal
	q, err := b.Open(t.Context(), t.Name(), backend.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)).With("queue", t.Name())})
	must(t, err)
	server.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, _ = q.Receive(ctx, 1, longLease)
	await(t, "the subscription's failure in the log", func() bool {
		return log.has("subscribing to wake-ups failed") && log.has("queue="+t.Name())
	})
}
