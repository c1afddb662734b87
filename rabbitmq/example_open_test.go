package rabbitmq_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/rabbitmq"
)

// A queue in RabbitMQ. The URL names the user and the virtual host.
func Example() {
	url := os.Getenv("EXAMPLE_RABBITMQ_URL") // amqp://user:password@localhost:5672/
	ctx := context.Background()
	b := rabbitmq.New(url, rabbitmq.Namespace("shop"))
	q, err := delayq.New(ctx, "orders", delayq.WithBackend(b))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := q.Push(ctx, []byte("order 17"), delayq.After(30*time.Minute)); err != nil {
		log.Fatal(err)
	}
	if err := b.Close(); err != nil { // the queue with it
		log.Fatal(err)
	}
}

// Retries with a few delays take one hop through a queue of their own each.
func ExampleBuckets() {
	b := rabbitmq.New(os.Getenv("EXAMPLE_RABBITMQ_URL"), rabbitmq.Buckets(10*time.Second, time.Minute, 10*time.Minute))
	defer b.Close()
}

// A connection tries the nodes of a cluster one after the other.
func ExampleHosts() {
	b := rabbitmq.New("amqp://user:secret@rabbit1/", rabbitmq.Hosts("rabbit2", "rabbit3:5673"))
	defer b.Close()
	fmt.Println(b.Traits().Name)
	// Output: rabbitmq
}
