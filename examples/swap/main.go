// Command swap is one program on every store: it says the same whatever URL it is given.
//
//	go run ./examples/swap memory:///swap
//	go run ./examples/swap zsetpoll://localhost:6379/swap
//	go run ./examples/swap keyspace://localhost:6379/swap
//	go run ./examples/swap redisson://localhost:6379/swap
//	go run ./examples/swap rabbitmq://guest:guest@localhost:5672/swap
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/delayq/delayq"
	_ "github.com/delayq/delayq/keyspace"
	_ "github.com/delayq/delayq/rabbitmq"
	_ "github.com/delayq/delayq/redisson"
	_ "github.com/delayq/delayq/zsetpoll"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: swap URL")
		os.Exit(2)
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	err := run(ctx, os.Args[1], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "swap:", err)
		os.Exit(1)
	}
}

// run pushes three messages, the latest first, and handles them as they become due. The second
// fails once. They are pushed at once, so that their delays begin together.
func run(ctx context.Context, url string, out io.Writer) (err error) {
	q, err := delayq.Open(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	var ms []delayq.Message
	for _, delay := range []time.Duration{900 * time.Millisecond, 600 * time.Millisecond, 300 * time.Millisecond} {
		ms = append(ms, delayq.Message{Body: fmt.Appendf(nil, "due after %v", delay), Delay: delay})
	}
	if _, err := q.PushBatch(ctx, ms); err != nil {
		return err
	}
	return handle(ctx, q, out)
}

var errOnce = errors.New("the first try always fails")

func handle(ctx context.Context, q delayq.Queue, out io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	left := 3
	return q.Consume(ctx, func(_ context.Context, d *delayq.Delivery) error {
		early := time.Now().Before(d.Due.Add(-time.Minute)) // a minute for clocks that differ
		if _, err := fmt.Fprintf(out, "%s, attempt %d, early: %v\n", d.Body, d.Attempt, early); err != nil {
			return err
		}
		if string(d.Body) == "due after 600ms" && d.Attempt == 1 {
			return errOnce
		}
		if left--; left == 0 {
			stop()
		}
		return nil
	}, delayq.Retry(delayq.Delays{time.Second}))
}
