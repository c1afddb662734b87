package keyspace_test

import (
	"context"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/keyspace"
)

// A queue whose workers are woken by Redis. A server that may not notify is worth an alarm.
func ExampleNew() {
	rdb := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: []string{"localhost:6379"}})
	defer func() { _ = rdb.Close() }()
	b := keyspace.New(rdb, keyspace.Sweep(500*time.Millisecond))
	defer func() { _ = b.Close() }()

	q, err := delayq.New(context.Background(), "orders", delayq.WithBackend(b))
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = q.Close() }()
	if err := b.Degraded(); err != nil {
		log.Printf("messages may be late by half a second: %v", err)
	}
}
