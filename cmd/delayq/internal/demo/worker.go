package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/cmd/delayq/internal/human"
	"github.com/delayq/delayq/cmd/delayq/internal/jsonl"
)

// work is a scene's own part of a handler. name is the demo's name of the message, late is how late
// it came.
type work func(d *delayq.Delivery, name string, late time.Duration) error

// foreignWait keeps the messages of other programs out of the demo's way.
const foreignWait = time.Minute

// attend makes a handler that keeps the ledger.
func (r *run) attend(do work) delayq.Handler {
	return func(ctx context.Context, d *delayq.Delivery) error {
		name, got := r.take(d)
		if !got.known {
			r.say.plain(fmt.Sprintf("%s was not pushed by this demo: given back for %s", jsonl.Shown(d.ID), human.Brief(foreignWait)))
			return d.Nack(ctx, foreignWait)
		}
		if err := do(d, name, got.late); err != nil {
			return err
		}
		r.ledger.done(name)
		return nil
	}
}

// take enters a delivery in the ledger.
func (r *run) take(d *delayq.Delivery) (name string, got delivery) {
	came := time.Now()
	name = r.names.of(d.ID)
	got = r.ledger.deliver(name, d.Body, came)
	for _, b := range got.breaches {
		r.say.broken(r.name(name), b)
	}
	return name, got
}

// serve lets workers handle messages while script runs and until all are settled.
func (r *run) serve(ctx context.Context, h delayq.Handler, script func(context.Context) error, opts ...delayq.ConsumeOption) error {
	ctx, stop := context.WithCancel(ctx)
	consumed := make(chan error, 1)
	go func() {
		defer stop() // nothing would be handled any more
		consumed <- r.queue.Consume(ctx, h, append(opts, delayq.Workers(r.Workers))...)
	}()
	err := script(ctx)
	if err == nil {
		err = r.ledger.wait(ctx, r.Patience)
	}
	stop()
	if failed := <-consumed; failed != nil {
		return failed
	}
	return err
}
