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
	fmt.Fprintf(&w, "%-*s  %8s  %s\n", stampWidth(), "DUE", "ATTEMPTS", "ID, BODY")
	for _, p := range ps {
		due := "-"
		if !p.Due.IsZero() {
			due = at(p.Due)
		}
		fmt.Fprintf(&w, "%-*s  %8d  %s\n", stampWidth(), due, p.Attempts, printable(cmp.Or(p.ID, "-")))
		if p.Err != nil {
			misfit(&w, why(p.Err), p.Body)
			continue
		}
		showContent(&w, p.Headers, p.Body)
	}
	sayMore(&w, more, len(ps), "limit")
	return w.String()
}
