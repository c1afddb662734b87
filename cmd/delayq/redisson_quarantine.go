package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/delayq/delayq/redisson"
)

type quarantineCommand struct {
	sharedQueue
	Limit  int      `default:"100" placeholder:"N" help:"How many to list, ${default} unless given (allowed: 1 to 100000)."`
	Delete []string `placeholder:"ID" help:"Delete these for good instead; may be repeated."`
	JSON   bool     `name:"json" help:"List in JSON, one line each."`
}

// Help is the text between the summary and the flags.
func (quarantineCommand) Help() string {
	return `A member of the sorted set that no release of Redisson can read stops Redisson's transfer: each transfer fails, after it has delivered the earlier members again. delayq puts such bytes aside when it finds them, with the reason. "delayq redisson restore" puts them back.

An id here is a digest of the bytes and of the place where they were; it is not the id of a message. In JSON the bytes are base64, with "text" where they are printable text.`
}

// Validate is called by the parser.
func (c *quarantineCommand) Validate() error {
	if len(c.Delete) > 0 && c.JSON {
		return errors.New("--json: allowed is listing, without --delete")
	}
	return nil
}

// Run lists the quarantine, or deletes from it.
func (c *quarantineCommand) Run(ctx context.Context, std streams) error {
	return c.use(ctx, func(b *redisson.Backend, queue string) error {
		q := b.Quarantine(queue)
		if len(c.Delete) > 0 {
			return reportAside(std, "deleted", c.Delete, q.Delete(ctx, c.Delete))
		}
		items, more, err := first(ctx, q.List, c.Limit)
		if err != nil {
			return err
		}
		if c.JSON {
			return writeLines(std.out, items, quarantinedDocument)
		}
		return write(std.out, quarantineText(queue, items, more))
	})
}

func quarantineText(queue string, items []redisson.Quarantined, more bool) string {
	if len(items) == 0 {
		return fmt.Sprintf("Nothing of queue %s is in the quarantine.\n", printable(queue))
	}
	var w strings.Builder
	fmt.Fprintf(&w, "%-24s  %-*s  %-11s  %s\n", "ID", stampWidth(), "DUE", "FROM", "REASON, BYTES")
	for _, item := range items {
		fmt.Fprintf(&w, "%-24s  %-*s  %s\n", item.ID, stampWidth(), at(item.Due), item.Place)
		misfit(&w, item.Reason, item.Bytes)
	}
	sayMore(&w, more, len(items), "limit")
	return w.String()
}
