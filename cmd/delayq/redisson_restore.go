package main

import (
	"context"
	"errors"
	"math"

	"github.com/delayq/delayq/redisson"
)

type restoreCommand struct {
	sharedQueue
	IDs []string `arg:"" optional:"" name:"id" placeholder:"ID" help:"The members to put back, as \"delayq redisson quarantine\" lists them."`
	All bool     `help:"Put everything back that is there now."`
}

// Help is the text between the summary and the flags.
func (restoreCommand) Help() string {
	return `Use it once the codec can read the bytes. Members whose time has passed are due at once. Members that still cannot be read come back to the quarantine when they are due, if a Go process has the queue open then. If no process has it open, they stop Redisson as before.`
}

// Validate is called by the parser.
func (c *restoreCommand) Validate() error {
	if c.All == (len(c.IDs) > 0) {
		return errors.New("expected ids, or --all without ids")
	}
	return nil
}

// Run puts things back.
func (c *restoreCommand) Run(ctx context.Context, std streams) error {
	return c.use(ctx, func(b *redisson.Backend, queue string) error {
		q := b.Quarantine(queue)
		var err error
		if c.All {
			err = restoreAll(ctx, q, std)
		} else {
			err = reportAside(std, "restored", c.IDs, q.Restore(ctx, c.IDs))
		}
		if err != nil {
			return err
		}
		return write(std.out, "Members that still cannot be read come back to the quarantine when they are due.\n")
	})
}

// restoreAll lists first: a restored member may be back in the quarantine at once.
func restoreAll(ctx context.Context, q *redisson.Quarantine, std streams) error {
	items, _, err := first(ctx, q.List, math.MaxInt)
	if err != nil {
		return err
	}
	ids := make([]string, len(items))
	for i, item := range items {
		ids[i] = item.ID
	}
	errs := q.Restore(ctx, ids)
	if errs != nil { // nil says that all went well
		ids, errs = stillThere(ids, errs)
	}
	return reportAside(std, "restored", ids, errs)
}
