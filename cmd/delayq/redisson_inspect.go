package main

import (
	"context"
	"fmt"

	"github.com/delayq/delayq/redisson"
)

type inspectCommand struct {
	sharedQueue
	Pending int  `default:"10" placeholder:"N" help:"How many waiting messages to show, the first due first, ${default} unless given (allowed: 0 to 100000)."`
	JSON    bool `name:"json" help:"Write one JSON document."`
}

// Help is the text between the summary and the flags.
func (inspectCommand) Help() string {
	return `Changes nothing. Give the codec that the queue has, as codec=… in the URL: string unless given. A payload that it cannot read is shown as bytes.

"destination" is the list that Java takes from, "timeouts" the sorted set of scheduled and leased messages, "index" the list of scheduled messages in the order of offers. "subscribers" are the processes that listen: each Java process with an RDelayedQueue, and each backend of delayq with the queue open. Formats are those of the first 1000 members.

Cancel and Reschedule take the ids, of Java's messages too. In JSON a message has the fields that "delayq peek" shows, its format, and "member", its bytes in Redis in base64.`
}

// inspection is the command's output.
type inspection struct {
	queue   string
	report  redisson.Report
	pending []redisson.Pending
	more    bool // counts beside the listed ones
}

// Run inspects the queue.
func (c *inspectCommand) Run(ctx context.Context, std streams) error {
	return c.use(ctx, func(b *redisson.Backend, queue string) error {
		seen, err := c.look(ctx, b, queue)
		if err != nil {
			return err
		}
		if c.JSON {
			return seen.document(std.out)
		}
		return write(std.out, seen.text())
	})
}

func (c *inspectCommand) look(ctx context.Context, b *redisson.Backend, queue string) (seen inspection, err error) {
	seen.queue = queue
	if seen.report, err = b.Inspect(ctx, queue); err != nil {
		return seen, err
	}
	list := func(ctx context.Context, cursor string, limit int) ([]redisson.Pending, string, error) {
		return b.Pending(ctx, queue, cursor, limit)
	}
	if seen.pending, seen.more, err = first(ctx, list, c.Pending); err != nil {
		return seen, fmt.Errorf("listing scheduled messages: %w", err)
	}
	return seen, nil
}

// peers says which releases of Redisson read a layout, and which write it.
var peers = map[redisson.MemberFormat]struct{ readers, writers string }{
	redisson.V1:   {"up to 3.21.0", "up to 3.21.0"},
	redisson.V2:   {"3.21.1 and newer", "3.21.1 and newer"},
	redisson.Both: {"every version", "delayq, or by chance up to 3.21.0"},
}

var formats = []redisson.MemberFormat{redisson.V1, redisson.V2, redisson.Both}
