package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/backend/admin"
	"github.com/delayq/delayq/cmd/delayq/internal/human"
)

type reshardCommand struct {
	namedQueue
	Shards int `arg:"" placeholder:"SHARDS" help:"How many, a power of two from 1 to 256."`
}

// Help is the text between the summary and the flags.
func (reshardCommand) Help() string {
	return `New ids go to the new shards. Messages that are there stay in the old shards, which end with the last of them. Programs go on meanwhile.

A queue without shards gets some. Programs that have it open find them by themselves. Those that claim by Arbitrate or Mover cannot, and get an error.`
}

// Run reshards.
func (c *reshardCommand) Run(ctx context.Context, std streams) (err error) {
	b, name, err := openStore(ctx, c.URL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if name == "" {
		return backend.Invalid("queue", "", "a name, in the path or as queue=NAME")
	}
	r, ok := b.(admin.Resharder)
	if !ok {
		return fmt.Errorf("%w by %s: shards", delayq.ErrUnsupported, b.Traits().Name)
	}
	if err := r.Reshard(ctx, name, c.Shards); err != nil {
		return err
	}
	sum := "new messages go to " + human.Count(int64(c.Shards), "shard")
	return doneUnwritten(std, sum, write(std.out, sum+"\n"))
}
