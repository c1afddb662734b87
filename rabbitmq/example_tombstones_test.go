package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/rabbitmq"
	"github.com/delayq/delayq/rabbitmq/tombstone"
	"github.com/delayq/delayq/rabbitmq/tombstone/redistomb"
)

// Messages can be cancelled with a store that remembers cancellations. Every process of the queue
// has to use the same store.
func ExampleWithTombstones() {
	ctx := context.Background()
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("EXAMPLE_REDIS_ADDR"), ContextTimeoutEnabled: true})
	b := rabbitmq.New(os.Getenv("EXAMPLE_RABBITMQ_URL"), rabbitmq.WithTombstones(redistomb.New(rdb)))
	q, err := delayq.New(ctx, "reminders", delayq.WithBackend(b), delayq.Require(delayq.Cancelling))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := q.Push(ctx, []byte("pay"), delayq.ID("invoice-17"), delayq.After(14*24*time.Hour)); err != nil {
		log.Fatal(err)
	}
	switch err := q.Cancel(ctx, "invoice-17"); { // it was paid
	case errors.Is(err, delayq.ErrInFlight), errors.Is(err, delayq.ErrNotFound):
		fmt.Println("the reminder was on its way already")
	case err != nil:
		log.Fatal(err)
	}
	if err := errors.Join(b.Close(), rdb.Close()); err != nil { // the backend does not close the store
		log.Fatal(err)
	}
}

// The broker cannot bring a message forward. Cancelling it and pushing another under its id does.
func ExampleWithTombstones_reschedule() {
	ctx := context.Background()
	b := rabbitmq.New(os.Getenv("EXAMPLE_RABBITMQ_URL"), rabbitmq.WithTombstones(tombstone.NewMemory()))
	q, err := delayq.New(ctx, "reminders", delayq.WithBackend(b))
	if err != nil {
		log.Fatal(err)
	}
	if err := q.Cancel(ctx, "invoice-17"); err != nil {
		log.Fatal(err) // in flight, or done: too late
	}
	if _, err := q.Push(ctx, []byte("pay now"), delayq.ID("invoice-17"), delayq.After(time.Hour)); err != nil {
		log.Fatal(err)
	}
	if err := b.Close(); err != nil {
		log.Fatal(err)
	}
}

// A store takes more of Redis the longer it remembers. Delays may be up to half as long as
// cancellations are kept.
func ExampleKeepCancelled() {
	b := rabbitmq.New("amqp://guest:guest@localhost/", rabbitmq.WithTombstones(tombstone.NewMemory()),
		rabbitmq.KeepCancelled(14*24*time.Hour), rabbitmq.KeepSettled(time.Minute))
	defer b.Close()
	fmt.Println(b.Traits().MaxDelay)
	// Output: 168h0m0s
}
