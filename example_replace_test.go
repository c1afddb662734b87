package delayq_test

import (
	"context"
	"fmt"
	"time"

	"github.com/delayq/delayq"
)

// Of many changes the last one is acted on, when there was none for a while.
func ExampleReplace() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "index", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	for _, version := range []string{"1", "2", "3"} {
		_, err := q.Push(ctx, []byte("version "+version), delayq.ID("document-17"), delayq.After(10*time.Millisecond), delayq.Replace())
		if err != nil {
			panic(err)
		}
	}
	d, err := q.Receive(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", d.Body)
	if err := d.Ack(ctx); err != nil {
		panic(err)
	}
	stats, err := q.Stats(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println("left:", stats.Scheduled+stats.Ready+stats.InFlight)
	// Output:
	// version 3
	// left: 0
}

// A document that changes while a worker indexes it is indexed once more.
func ExampleReplaceAfterInFlight() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "index", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	push := func(version string) {
		_, err := q.Push(ctx, []byte(version), delayq.ID("document-17"), delayq.ReplaceAfterInFlight())
		if err != nil {
			panic(err)
		}
	}
	push("version 1")
	for range 2 {
		d, err := q.Receive(ctx)
		if err != nil {
			panic(err)
		}
		if string(d.Body) == "version 1" { // it is in flight
			push("version 2")
			push("version 3")
		}
		fmt.Printf("%s, attempt %d\n", d.Body, d.Attempt)
		if err := d.Ack(ctx); err != nil {
			panic(err)
		}
	}
	// Output:
	// version 1, attempt 1
	// version 3, attempt 1
}

// A message that is replaced all the time is delivered all the same.
func ExampleMaxWait() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "index", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	push := func(delay time.Duration) {
		_, err := q.Push(ctx, nil, delayq.ID("document-17"), delayq.After(delay), delayq.Replace(), delayq.MaxWait(10*time.Minute))
		if err != nil {
			panic(err)
		}
	}
	push(time.Minute)
	first, err := q.Get(ctx, "document-17")
	if err != nil {
		panic(err)
	}
	push(time.Hour)
	last, err := q.Get(ctx, "document-17")
	if err != nil {
		panic(err)
	}
	fmt.Println("moved by", last.Due.Sub(first.Due))
	// Output:
	// moved by 9m0s
}
