package rabbitmq_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
)

// refuseMore has the broker refuse pushes to a queue that has more than 10 messages.
func refuseMore(ctx context.Context, t *testing.T, server *testenv.RabbitServer, vhost string, q backend.Queue, name string) {
	t.Helper()
	policy(server, vhost, `^delayq\.v1\.q\.`+name+`$`, `{"max-length":10,"overflow":"reject-publish"}`)
	await(t, "a refusal", func() bool { // a quorum queue applies a policy with a delay
		within, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return errors.Is(q.Schedule(within, message("refused", 0))[0], backend.ErrUnavailable)
	})
}

// TestWorkersOfAFullQueueStop stops the workers of a queue that takes no more messages, again and
// again. Their unseen messages come again as attempt 1, and none becomes a dead letter.
func TestWorkersOfAFullQueueStop(t *testing.T) {
	testenv.In(t, testenv.All)
	const n = 300
	server, vhost := sharedVhost(t)
	ctx := deadline(t, patience)
	b := newBackend(t, server.VhostURL(vhost))
	q, err := newQueue(t, b, "full")
	must(t, err)
	_, err = q.PushBatch(ctx, make([]delayq.Message, n))
	must(t, err)
	raw := openOn(t, b, "full")
	refuseMore(ctx, t, server, vhost, raw, "full")
	ch := channel(t, server.VhostURL(vhost))
	waiting := func() int { return ready(t, ch, "delayq.v1.q.full") + ready(t, ch, undeliverable) }
	var extra int // messages of refuseMore that the queue took
	await(t, "the queue to settle", func() bool { extra = waiting() - n; return extra >= 0 })
	var seen atomic.Int64
	for range 3 {
		consuming, stop := context.WithCancel(ctx)
		before := seen.Load()
		err := q.Consume(consuming, func(_ context.Context, d *delayq.Delivery) error {
			if d.Attempt != 1 {
				t.Errorf("message %s came as attempt %d", d.ID, d.Attempt)
			}
			if seen.Add(1) == before+20 {
				stop()
			}
			return nil
		}, delayq.Workers(8), delayq.MaxAttempts(1))
		stop()
		must(t, err)
		dead := func() int { return ready(t, ch, "delayq.v1.dead.full") }
		await(t, "all to be back", func() bool { return dead() > 0 || waiting() == n+extra-int(seen.Load()) })
		if dead() > 0 {
			t.Fatalf("%d unseen messages became dead letters", dead())
		}
	}
	server.Ctl("clear_policy", "-p", vhost, "test")
	takeAll(ctx, t, raw, n+extra-int(seen.Load()), func(d backend.Delivery) {
		if d.Attempt != 1 {
			t.Errorf("message %s comes as attempt %d", d.ID, d.Attempt)
		}
	})
}

// TestNackToAFullQueue nacks and releases a message of a queue that takes no more. It comes again
// when the queue has room.
func TestNackToAFullQueue(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	for what, c := range map[string]struct {
		giveBack backend.Return
		attempt  int
	}{
		"nack":    {backend.Return{}, 2},
		"release": {backend.Return{Untouched: true}, 1},
	} {
		t.Run(what, func(t *testing.T) {
			server, vhost := sharedVhost(t)
			ctx := deadline(t, patience)
			q := openOn(t, newBackend(t, server.VhostURL(vhost)), "full")
			must(t, q.Schedule(ctx, message("first", 0))...)
			d := receiveOne(ctx, t, q, "first")
			must(t, q.Schedule(ctx, batch("m", 30, 0))...)
			refuseMore(ctx, t, server, vhost, q, "full")
			c.giveBack.Lease = d.Lease()
			must(t, q.Nack(ctx, []backend.Return{c.giveBack})...)
			for came := false; !came; {
				ds, err := q.Receive(ctx, 100, time.Minute)
				must(t, err)
				ack(ctx, t, q, ds...)
				for _, d := range ds {
					if d.ID != "first" {
						continue
					}
					if came = true; d.Attempt != c.attempt {
						t.Errorf("the message comes as attempt %d; want %d", d.Attempt, c.attempt)
					}
				}
			}
		})
	}
}
