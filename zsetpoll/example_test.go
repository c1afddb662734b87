package zsetpoll_test

import (
	"context"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/zsetpoll"
)

// A queue on a client that the program has already. One backend serves all queues of a process.
func ExampleNew() {
	rdb := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: []string{"localhost:6379"}})
	defer func() { _ = rdb.Close() }()
	b := zsetpoll.New(rdb, zsetpoll.Prefix("shop"))
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

// A queue that a URL names, on a Cluster, over TLS.
func Example_url() {
	q, err := delayq.Open(context.Background(),
		"zsetpoll://app:secret@redis-1:6379/orders?cluster=true&addr=redis-2:6379&tls=true")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = q.Close() }()
}
