package redisson_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/redisson"
)

// A queue shared with Java, where a service has `redisson.getBlockingQueue("orders",
// StringCodec.INSTANCE)` and an RDelayedQueue on it. What either side pushes the workers of both
// take.
func ExampleNew() {
	rdb := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: []string{"localhost:6379"}})
	defer func() { _ = rdb.Close() }()
	b := redisson.New(rdb)
	defer func() { _ = b.Close() }()

	q, err := delayq.New(context.Background(), "orders", delayq.WithBackend(b))
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = q.Close() }()
	if _, err := q.Push(context.Background(), []byte("order 17"), delayq.After(30*time.Minute)); err != nil {
		log.Print(err)
	}
}

// The Java side is Redisson 3.20 with its default codec, so its members are of the older layout.
func ExampleWithCodec() {
	rdb := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: []string{"localhost:6379"}})
	defer func() { _ = rdb.Close() }()
	b := redisson.New(rdb, redisson.WithCodec(redisson.Kryo5String), redisson.Format(redisson.V1))
	defer func() { _ = b.Close() }()
}

// Without Java at the queue an envelope keeps ids and headers too.
func ExampleWithCodec_envelope() {
	q, err := delayq.Open(context.Background(), "redisson://localhost:6379/orders?codec=envelope")
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = q.Close() }()
	_, err = q.Push(context.Background(), []byte("order 17"), delayq.ID("17"), delayq.Header("trace", "4bf92f35"))
	if err != nil {
		log.Print(err)
	}
}

// List unreadable entries, and put them back once every writer is of one version.
func ExampleBackend_Quarantine() {
	ctx := context.Background()
	b, queue, err := redisson.OpenURL(ctx, "redisson://localhost:6379/orders")
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = b.Close() }()
	quarantine := b.Quarantine(queue)
	for cursor := ""; ; {
		page, next, err := quarantine.List(ctx, cursor, 100)
		if err != nil {
			log.Print(err)
			return
		}
		for _, bad := range page {
			fmt.Printf("%s, due %v: %s: %x\n", bad.ID, bad.Due, bad.Reason, bad.Bytes)
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	for _, err := range quarantine.Restore(ctx, []string{"6e340b9cffb37a989ca544e6"}) {
		if err != nil {
			log.Print(err)
		}
	}
}

// Cancel a message that Java has pushed: an entry of the sorted set and its score make its id.
func ExampleMemberID() {
	ctx := context.Background()
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer func() { _ = rdb.Close() }()
	q, err := delayq.New(ctx, "orders", delayq.WithBackend(redisson.New(rdb)))
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = q.Close() }()

	head, err := rdb.ZRangeWithScores(ctx, "redisson_delay_queue_timeout:{orders}", 0, 0).Result()
	if err != nil || len(head) == 0 {
		log.Print("nothing waits: ", err)
		return
	}
	member, _ := head[0].Member.(string)
	id, err := redisson.MemberID([]byte(member), time.UnixMilli(int64(head[0].Score)))
	if err != nil {
		log.Print(err)
		return
	}
	if err := q.Cancel(ctx, id); err != nil {
		log.Print(err)
	}
}

// Which versions of Redisson write to a queue, and whether Java listens to it.
func ExampleBackend_Inspect() {
	ctx := context.Background()
	b, queue, err := redisson.OpenURL(ctx, "redisson://localhost:6379/orders")
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = b.Close() }()
	r, err := b.Inspect(ctx, queue)
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Printf("%d wait in %s: %v\n", r.Waiting, r.Keys.Timeouts, r.Formats)
	fmt.Printf("%d lie in %s, %d are leased, %d listen\n", r.Handed, r.Keys.Destination, r.Leased, r.Subscribers)
}
