package gocloud_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"gocloud.dev/pubsub"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/adapters/gocloud"
)

// An order that is not paid in time is cancelled.
func Example() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "unpaid", delayq.InMemory()) // in memory; delayq.WithBackend chooses another store
	if err != nil {
		log.Fatal(err)
	}
	topic := gocloud.OpenTopic(q, nil)
	sub := gocloud.OpenSubscription(q, nil)

	err = topic.Send(ctx, &pubsub.Message{
		Body:       []byte("order 17"),
		BeforeSend: gocloud.After(30 * time.Millisecond), // minutes, in a shop
	})
	if err != nil {
		log.Fatal(err)
	}
	msg, err := sub.Receive(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s was not paid: cancelling it\n", msg.Body)
	msg.Ack()

	if err := errors.Join(topic.Shutdown(ctx), sub.Shutdown(ctx), q.Close()); err != nil {
		log.Fatal(err)
	}
	// Output: order 17 was not paid: cancelling it
}

// A URL chooses the store. The package of its scheme must be imported; memory always is.
func ExampleURLOpener() {
	ctx := context.Background()
	topic, err := pubsub.OpenTopic(ctx, "delayq:memory:///orders")
	if err != nil {
		log.Fatal(err)
	}
	sub, err := pubsub.OpenSubscription(ctx, "delayq:memory:///orders")
	if err != nil {
		log.Fatal(err)
	}
	if err := topic.Send(ctx, &pubsub.Message{Body: []byte("order 17")}); err != nil {
		log.Fatal(err)
	}
	msg, err := sub.Receive(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", msg.Body)
	msg.Ack()
	if err := errors.Join(topic.Shutdown(ctx), sub.Shutdown(ctx)); err != nil {
		log.Fatal(err)
	}
	// Output: order 17
}

// As gives the delivery of delayq, here to make a dead letter of a message that failed too often.
// Ack has no effect on it then, but gocloud asks for the call.
func ExampleOpenSubscription_deadLetter() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "mails", delayq.InMemory())
	if err != nil {
		log.Fatal(err)
	}
	if _, err := q.Push(ctx, []byte("mail 1")); err != nil {
		log.Fatal(err)
	}
	sub := gocloud.OpenSubscription(q, &gocloud.SubscriptionOptions{Retry: delayq.Delays{10 * time.Millisecond}})
	for dead := false; !dead; {
		msg, err := sub.Receive(ctx)
		if err != nil {
			log.Fatal(err)
		}
		var d *delayq.Delivery
		if dead = msg.As(&d) && d.Attempt == 3; !dead {
			msg.Nack()
			continue
		}
		if err := d.DeadLetter(ctx, "the mail server refused it three times"); err != nil {
			log.Fatal(err)
		}
		msg.Ack()
	}
	for letter, err := range q.Dead().All(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %s\n", letter.Body, letter.Reason)
	}
	if err := errors.Join(sub.Shutdown(ctx), q.Close()); err != nil {
		log.Fatal(err)
	}
	// Output: mail 1: the mail server refused it three times
}
