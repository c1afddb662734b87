package watermill_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/delay"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"

	"github.com/delayq/delayq"
	adapter "github.com/delayq/delayq/adapters/watermill"
	"github.com/delayq/delayq/memory"
)

// An order that is not paid in time is cancelled. The delay is Watermill's own.
func Example() {
	store := memory.New() // or zsetpoll.New(client), rabbitmq.New(url), …
	config := adapter.Config{Backend: store}
	pub, err := adapter.NewPublisher(config)
	if err != nil {
		log.Fatal(err)
	}
	sub, err := adapter.NewSubscriber(config)
	if err != nil {
		log.Fatal(err)
	}
	messages, err := sub.Subscribe(context.Background(), "unpaid")
	if err != nil {
		log.Fatal(err)
	}
	msg := message.NewMessage(watermill.NewUUID(), []byte("order 17"))
	delay.Message(msg, delay.For(30*time.Millisecond)) // minutes, in a shop
	if err := pub.Publish("unpaid", msg); err != nil {
		log.Fatal(err)
	}

	msg = <-messages
	fmt.Printf("%s was not paid: cancelling it\n", msg.Payload)
	msg.Ack()

	if err := errors.Join(sub.Close(), pub.Close(), store.Close()); err != nil {
		log.Fatal(err)
	}
	// Output: order 17 was not paid: cancelling it
}

// A router runs several handlers at a time, and waits longer after each failure.
func ExampleSubscriber_router() {
	store := memory.New()
	sub, err := adapter.NewSubscriber(adapter.Config{
		Backend: store,
		Consume: []delayq.ConsumeOption{delayq.Workers(8)},
	})
	if err != nil {
		log.Fatal(err)
	}
	pub, err := adapter.NewPublisher(adapter.Config{Backend: store})
	if err != nil {
		log.Fatal(err)
	}
	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	if err != nil {
		log.Fatal(err)
	}
	backoff := middleware.DelayOnError{InitialInterval: 10 * time.Millisecond, MaxInterval: time.Minute, Multiplier: 2}
	router.AddMiddleware(backoff.Middleware)
	attempt, done := 0, make(chan struct{})
	router.AddConsumerHandler("mailer", "mails", sub, func(msg *message.Message) error {
		attempt++
		if attempt < 3 {
			return errors.New("the mail server is busy")
		}
		fmt.Printf("sent %s at attempt %d\n", msg.Payload, attempt)
		close(done)
		return nil
	})
	if err := pub.Publish("mails", message.NewMessage(watermill.NewUUID(), []byte("mail 1"))); err != nil {
		log.Fatal(err)
	}

	go func() {
		<-done
		_ = router.Close()
	}()
	if err := errors.Join(router.Run(context.Background()), pub.Close(), store.Close()); err != nil {
		log.Fatal(err)
	}
	// Output: sent mail 1 at attempt 3
}
