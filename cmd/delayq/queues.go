package main

import (
	"context"
	"errors"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

type queuesCommand struct {
	namedQueue
	JSON bool `name:"json" help:"Write JSON, one line for each queue."`
}

// Help is the text between the summary and the flags.
func (queuesCommand) Help() string {
	return `Lists the queues of the store that have messages or had some lately, sorted. The queue that the URL names is not opened.

On Redis these are the queues that the library or this program opened under the same prefix. A queue leaves the list a day after its last message is gone and its last handle is closed. Queues that only Java uses are not listed. On RabbitMQ they are the queues of the namespace, and the management API must be reachable: ?management=HOST:PORT says where.`
}

// Run lists.
func (c *queuesCommand) Run(ctx context.Context, std streams) (err error) {
	b, _, err := backend.DefaultMux().Open(ctx, c.URL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	names, err := delayq.Queues(ctx, b)
	if err != nil {
		return err
	}
	if c.JSON {
		return writeLines(std.out, names, func(name string) any {
			return struct {
				Queue string `json:"queue"`
			}{name}
		})
	}
	for _, name := range names {
		if err := write(std.out, printable(name)+"\n"); err != nil {
			return err
		}
	}
	return nil
}
