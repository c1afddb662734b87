package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/delayq/delayq"
)

type peekCommand struct {
	namedQueue
	Limit int  `default:"10" placeholder:"N" help:"How many to show, the first due first, ${default} unless given (allowed: 1 to 1000000)."`
	JSON  bool `name:"json" help:"Write JSON, one line for each message."`
}

// Help is the text between the summary and the flags.
func (peekCommand) Help() string {
	return `Changes nothing: no attempt is counted, and workers get messages meanwhile. Leased messages and dead letters are not shown.`
}

// Validate is called by the parser.
func (c *peekCommand) Validate() error { return validLimit(c.Limit) }

func validLimit(n int) error {
	if n < 1 || n > 1_000_000 {
		return fmt.Errorf("--limit=%d: allowed is 1 to 1000000", n)
	}
	return nil
}

// Run shows scheduled messages.
func (c *peekCommand) Run(ctx context.Context, std streams) error {
	return c.use(ctx, std, func(q delayq.Queue) error {
		seen, more, err := first(ctx, q.Peek, c.Limit)
		if err != nil {
			return err
		}
		if c.JSON {
			return writeLines(std.out, seen, waitingJSON)
		}
		return write(std.out, waitingText(seen, more))
	})
}

func waitingText(ps []delayq.Pending, more bool) string {
	if len(ps) == 0 {
		return "Nothing waits.\n"
	}
	var w strings.Builder
	fmt.Fprintf(&w, "%-24s  %8s  %s\n", "DUE", "ATTEMPTS", "ID, BODY")
	for _, p := range ps {
		due := "-"
		if !p.Due.IsZero() {
			due = at(p.Due)
		}
		fmt.Fprintf(&w, "%-24s  %8d  %s\n", due, p.Attempts, printable(cmp.Or(p.ID, "-")))
		if p.Err != nil {
			misfit(&w, why(p.Err), p.Body)
			continue
		}
		showContent(&w, p.Headers, p.Body)
	}
	if more {
		fmt.Fprintf(&w, "There are more than these %d; --limit=N shows them.\n", len(ps))
	}
	return w.String()
}
