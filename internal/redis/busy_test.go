package redis_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
)

// With the last message of a queue all its keys go. One that always has messages must not keep
// anything of those that are gone.
func TestBusyQueueKeepsNothingOfGoneMessages(t *testing.T) {
	eachStore(t, func(t *testing.T, s store) {
		client := testenv.SharedRedis(t).Client(t)
		b := s.open(client)
		t.Cleanup(func() { must(t, b.Close()) })
		name := redistest.Name()
		q := redistest.Open(t, b, name)
		must(t, q.Schedule(t.Context(), []backend.Message{{ID: "stays", Body: []byte("stays"), Delay: time.Hour}})...)
		before := sizes(t, client, name)
		for i := range 3 {
			lives(t.Context(), t, q, i)
		}
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) { // some goes a moment later
			after := sizes(t, client, name)
			if maps.Equal(before, after) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("the keys have %v elements; before the messages it was %v", after, before)
			}
		}
	})
}

// lives takes messages through their lives, one for each way to go.
func lives(ctx context.Context, t *testing.T, q backend.Queue, round int) {
	t.Helper()
	take := func() backend.Delivery {
		ms := []backend.Message{{ID: fmt.Sprint("m", round), Body: []byte("goes")}}
		must(t, q.Schedule(ctx, ms)...)
		return receiveOne(ctx, t, q, time.Minute)
	}
	die := func() string {
		d := take()
		must(t, q.Dead(ctx, []backend.DeadLetterRequest{{Lease: d.Lease(), Reason: "of the test"}})...)
		return d.ID
	}
	ack := func(d backend.Delivery) { must(t, q.Ack(ctx, []backend.Lease{d.Lease()})...) }
	ack(take())
	d := take()
	must(t, q.Nack(ctx, []backend.Return{{Lease: d.Lease()}})...)
	ack(receiveOne(ctx, t, q, time.Minute))
	must(t, q.Redrive(ctx, []string{die()})...)
	ack(receiveOne(ctx, t, q, time.Minute))
	must(t, q.DeleteDead(ctx, []string{die()})...)
	die()
	time.Sleep(2 * time.Millisecond) // on the server's clock
	if n, more, err := q.TrimDead(ctx, backend.Retention{MaxAge: time.Millisecond}); n != 1 || more || err != nil {
		t.Errorf("TrimDead returns %d, %v, %v", n, more, err)
	}
}

func receiveOne(ctx context.Context, t *testing.T, q backend.Queue, lease time.Duration) backend.Delivery {
	t.Helper()
	ds, err := q.Receive(ctx, 1, lease)
	must(t, err)
	return ds[0]
}

// sizes returns how many elements each key of a queue has.
func sizes(t *testing.T, client *redis.Client, queue string) map[string]int64 {
	t.Helper()
	all := make(map[string]int64)
	for _, key := range client.Keys(t.Context(), "*"+queue+"*").Val() {
		if redistest.Stays(key) {
			continue
		}
		var n int64
		switch client.Type(t.Context(), key).Val() {
		case "zset":
			n = client.ZCard(t.Context(), key).Val()
		case "hash":
			n = client.HLen(t.Context(), key).Val()
		case "list":
			n = client.LLen(t.Context(), key).Val()
		default:
			continue // a counter, or a note that ends by itself
		}
		all[key] = n
	}
	return all
}
