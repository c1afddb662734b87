package zsetpoll_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/zsetpoll"
)

// patient receives although the server may be away for a moment.
func patient(ctx context.Context, t *testing.T, q backend.Queue, id string) backend.Delivery {
	t.Helper()
	for {
		ds, err := q.Receive(ctx, 1, time.Minute)
		if err == nil {
			if len(ds) != 1 || ds[0].ID != id {
				t.Fatalf("got %+v, want %q", ds, id)
			}
			return ds[0]
		}
		if ctx.Err() != nil {
			t.Fatalf("waiting for %q: %v", id, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// waiting starts a Receive whose fetcher sleeps, since it has looked and subscribed.
func waiting(ctx context.Context, t *testing.T, q backend.Queue, client *redis.Client) <-chan backend.Delivery {
	t.Helper()
	got := make(chan backend.Delivery, 1)
	go func() {
		defer close(got)
		for ctx.Err() == nil {
			if ds, err := q.Receive(ctx, 1, time.Minute); err == nil {
				got <- ds[0]
				return
			}
		}
	}()
	await(t, "the subscription", func() bool {
		channels, err := client.PubSubChannels(ctx, "delayq:{"+t.Name()+"}:wake").Result()
		return err == nil && len(channels) == 1
	})
	return got
}

func within(ctx context.Context, t *testing.T, got <-chan backend.Delivery, id string, longest time.Duration) backend.Delivery {
	t.Helper()
	began := time.Now()
	select {
	case d, ok := <-got:
		if took := time.Since(began); !ok || d.ID != id || took > longest {
			t.Fatalf("got %+v after %v, want %q within %v", d, took, id, longest)
		}
		return d
	case <-ctx.Done():
		t.Fatalf("waited in vain for %q", id)
		return backend.Delivery{}
	}
}

// TestConnectionsKilled cuts connections under a sleeping worker. A push of another backend wakes
// it after Poll at the latest.
func TestConnectionsKilled(t *testing.T) {
	const poll, noise = 500 * time.Millisecond, 30 * time.Second
	for _, kind := range []string{"normal", "pubsub"} {
		t.Run(kind, func(t *testing.T) {
			eachMode(t, func(t *testing.T, mode zsetpoll.Mode) {
				ctx := redistest.Deadline(t)
				server := testenv.Redis(t, testenv.Private())
				client, other := server.Client(t), server.Client(t)
				q := open(t, client, zsetpoll.Claims(mode), zsetpoll.Poll(poll))
				pusher := open(t, other, zsetpoll.Claims(mode))
				for i := range 5 {
					got := waiting(ctx, t, q, other)
					must(t, other.Do(ctx, "client", "kill", "type", kind).Err())
					must(t, pusher.Schedule(ctx, message(fmt.Sprint(i), 0))...)
					d := within(ctx, t, got, fmt.Sprint(i), poll+noise)
					must(t, q.Ack(ctx, []backend.Lease{d.Lease()})...)
				}
				drained(ctx, t, q, other)
			})
		})
	}
}

// TestWakeUp has a sleeping worker with a long Poll learn at once of a message pushed elsewhere, and of
// one that replaces a far one.
func TestWakeUp(t *testing.T) {
	eachMode(t, func(t *testing.T, mode zsetpoll.Mode) {
		ctx := redistest.Deadline(t)
		server := testenv.SharedRedis(t)
		client := server.Client(t)
		q := open(t, client, zsetpoll.Claims(mode), zsetpoll.Poll(time.Minute))
		pusher := open(t, server.Client(t))
		must(t, pusher.Schedule(ctx, message("far", time.Hour))...)
		for i := range 20 {
			near := message(fmt.Sprint(i), time.Duration(i%3)*10*time.Millisecond)
			if near[0].Replace = i%2 == 1; near[0].Replace {
				must(t, pusher.Schedule(ctx, message(fmt.Sprint(i), time.Hour))...)
			}
			got := waiting(ctx, t, q, client)
			must(t, pusher.Schedule(ctx, near)...)
			d := within(ctx, t, got, fmt.Sprint(i), 30*time.Second)
			must(t, q.Ack(ctx, []backend.Lease{d.Lease()})...)
		}
		must(t, pusher.Cancel(ctx, []string{"far"})...)
		drained(ctx, t, q, client)
	})
}

// TestServerPaused has the server stand still for longer than a client waits for a reply. What must not
// fail goes by another client: on a busy machine, replies to the hasty one are late at any time.
func TestServerPaused(t *testing.T) {
	eachMode(t, func(t *testing.T, mode zsetpoll.Mode) {
		ctx := redistest.Deadline(t)
		server := testenv.Redis(t, testenv.Private())
		client := server.Client(t)
		hasty := open(t, server.Client(t, func(o *redis.Options) { o.ReadTimeout = 100 * time.Millisecond }), zsetpoll.Claims(mode))
		q := open(t, client, zsetpoll.Claims(mode))
		must(t, q.Schedule(ctx, message("held", 0))...)
		held := receiveOne(ctx, t, q, time.Hour, "held")
		must(t, q.Schedule(ctx, message("due", 200*time.Millisecond))...)
		server.Pause()
		pushed := make(chan []error, 1)
		go func() { pushed <- hasty.Schedule(ctx, message("lost", time.Hour)) }()
		if errs := <-pushed; errs == nil {
			t.Error("a push to a paused server succeeds")
		}
		server.Resume()
		due := patient(ctx, t, hasty, "due")
		must(t, q.Ack(ctx, leases([]backend.Delivery{held, due}))...)
		if err := errors.Join(q.Cancel(ctx, []string{"lost"})...); err != nil && !errors.Is(err, backend.ErrNotFound) {
			t.Errorf("the push that told nothing: %v", err)
		}
		drained(ctx, t, q, client)
	})
}

// TestContextEndsInABlackHole ends a Receive whose claim gets no reply. It does not wait for one.
func TestContextEndsInABlackHole(t *testing.T) {
	eachMode(t, func(t *testing.T, mode zsetpoll.Mode) {
		server := testenv.SharedRedis(t)
		proxy := testenv.Proxy(t, server.Addr())
		client := server.Client(t, func(o *redis.Options) { o.Addr, o.ReadTimeout = proxy.Addr(), 2*patience })
		q := open(t, client, zsetpoll.Claims(mode), zsetpoll.Poll(10*time.Millisecond))
		must(t, q.Schedule(t.Context(), message("a", 0))...)
		must(t, q.Ack(t.Context(), leases([]backend.Delivery{receiveOne(t.Context(), t, q, time.Minute, "a")}))...)
		proxy.Blackhole(true)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		ds, err := q.Receive(ctx, 1, time.Minute)
		end, _ := ctx.Deadline()
		late := time.Since(end)
		if len(ds) > 0 || !errors.Is(err, context.DeadlineExceeded) || late > patience {
			t.Errorf("%v after its context ended, Receive gave %+v, %v", late, ds, err)
		}
		proxy.Blackhole(false)
		must(t, open(t, server.Client(t)).Schedule(t.Context(), message("b", 0))...)
		b := patient(redistest.Deadline(t), t, q, "b")
		must(t, q.Ack(t.Context(), []backend.Lease{b.Lease()})...)
		drained(redistest.Deadline(t), t, q, server.Client(t))
	})
}
