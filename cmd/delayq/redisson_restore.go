package main

import (
	"context"
	"errors"
	"math"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/redisson"
)

type restoreCommand struct {
	sharedQueue
	IDs []string `arg:"" optional:"" name:"id" placeholder:"ID" help:"The members to put back, as \"delayq redisson quarantine\" lists it."`
	All bool     `help:"Put everything back that is there now."`
}

// Help is the text between the summary and the flags.
func (restoreCommand) Help() string {
	return `Use it once the codec can read the bytes. Members whose time has passed are due at once. Members that still cannot be read come back to the quarantine when they are due, if a Go process has the queue open then; if none has, they stop Redisson as before.`
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
		if err := c.restore(ctx, b.Quarantine(queue), std); err != nil {
			return err
		}
		return write(std.out, "Members that still cannot be read come back to the quarantine when they are due.\n")
	})
}

func (c *restoreCommand) restore(ctx context.Context, q *redisson.Quarantine, std streams) error {
	if c.All {
		return restoreAll(ctx, q, std)
	}
	return report(std, "restored", c.IDs, q.Restore(ctx, c.IDs))
}

// restoreAll lists first: a restored member may be back in the quarantine at once.
func restoreAll(ctx context.Context, q *redisson.Quarantine, std streams) error {
	items, _, err := first(ctx, q.List, math.MaxInt)
	if err != nil {
		return err
	}
	var there []string
	var errs []error
	ids := idsOf(items)
	for i, err := range outcomes(len(ids), q.Restore(ctx, ids)) {
		if !errors.Is(err, backend.ErrNotFound) { // another process was faster
			there, errs = append(there, ids[i]), append(errs, err)
		}
	}
	return report(std, "restored", there, errs)
}

func idsOf(items []redisson.Quarantined) []string {
	ids := make([]string, len(items))
	for i, item := range items {
		ids[i] = item.ID
	}
	return ids
}

// outcomes has one for each, where a backend leaves them out if all went well.
func outcomes(n int, errs []error) []error {
	if errs == nil {
		return make([]error, n)
	}
	return errs
}
