package rabbitmq

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
)

var opened atomic.Int64

// openNew opens a new queue on a new backend.
func openNew(ctx context.Context, t *testing.T, url string, opts ...Option) *queue {
	t.Helper()
	b, name := New(url, opts...), fmt.Sprint(t.Name(), "-", opened.Add(1))
	t.Cleanup(func() { _ = b.Close() })
	q, err := testenv.RetryOnBusyRabbit(ctx, func() (backend.Queue, error) {
		return b.Open(ctx, name, backend.Options{Logger: slog.New(slog.DiscardHandler)})
	})
	if err != nil {
		t.Fatal(err)
	}
	return q.(*queue)
}

// inLoop opens a queue on a new backend, and runs f in the loop of its handle once that has a channel.
func inLoop(ctx context.Context, t *testing.T, f func(c *channel)) *queue {
	t.Helper()
	q := openNew(ctx, t, testenv.SharedRabbitMQ(t).URL())
	for done := false; !done; {
		if err := q.loop.do(ctx, func() {
			if c := q.loop.channel; c != nil {
				done = true
				f(c)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	return q
}

// TestClosedChannelLeasesNothing has a due message and a Receive when the channel closes. The broker
// hands the message out again, so a lease of it would be void.
func TestClosedChannelLeasesNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	w := &waiter{limit: 1, lease: time.Minute, got: make(chan received, 1)}
	inLoop(ctx, t, func(c *channel) {
		_ = c.Close()
		c.unacked.due = []*delivery{{record: record{id: "a"}, tag: 1}}
		c.loop.waiters.all = []*waiter{w}
		limit := time.Now().Add(time.Hour)
		if next := c.update(limit); !next.Equal(limit) || len(w.got) > 0 || len(c.unacked.leased) > 0 {
			t.Errorf("%d messages were leased, and the next event is in %v", len(c.unacked.leased), time.Until(next))
		}
	})
}

// TestClosedChannelPublishesNoCopies returns a message that no handler has seen after its channel has
// closed: the broker has it in the queue again, so a copy would be a duplicate.
func TestClosedChannelPublishesNoCopies(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	q := inLoop(ctx, t, func(c *channel) {
		_ = c.Close()
		c.returnUnseen(ctx, []*delivery{{record: record{id: "a", due: time.Now()}, tag: 1}})
	})
	s, err := testenv.RetryOnBusyRabbit(ctx, func() (*session, error) { return q.sub.session(ctx) })
	if err != nil {
		t.Fatal(err)
	}
	if n, err := length(s.conn.Connection, q.names.queue(q.name)); n != 0 || err != nil {
		t.Errorf("the queue has %d messages, %v", n, err)
	}
}
