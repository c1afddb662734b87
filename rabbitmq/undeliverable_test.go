package rabbitmq_test

import (
	"context"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
)

// TestBehindSurplus has many messages in undeliverable that a policy took out of their queue.
// Behind them are messages of a deleted queue, which are moved back.
func TestBehindSurplus(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	const surplus, room = 5200, 10
	server, vhost := sharedVhost(t)
	ctx := deadline(t, patience)
	url := server.VhostURL(vhost)
	b, other := newBackend(t, url), newBackend(t, url)
	big, q, ch := openOn(t, b, "big"), openOn(t, other, "orders"), channel(t, url)
	policy(server, vhost, `^delayq\.v1\.q\.big$`, `{"max-length":10}`)
	awaitUndeliverable := func(n int) {
		t.Helper()
		await(t, "messages in undeliverable", func() bool { return ready(t, ch, undeliverable) == n })
	}
	for i := range surplus / 400 {
		must(t, big.Schedule(ctx, make([]backend.Message, 400))...)
		awaitUndeliverable((i+1)*400 - room)
	}
	must(t, q.Schedule(ctx, batch("m", 20, 20*time.Second))...) // they come once the queue is gone
	must(t, other.Close())
	deleteQueue(t, ch, "delayq.v1.q.orders")
	awaitUndeliverable(surplus - room + 20)
	soon, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	drain(soon, t, openOn(t, b, "orders"), 20)
	awaitUndeliverable(surplus - room)
}
