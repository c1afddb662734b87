package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/delayq/delayq"
)

type getCommand struct {
	namedQueue
	IDs  []string `arg:"" name:"id" placeholder:"ID" help:"The messages."`
	JSON bool     `name:"json" help:"Write JSON, one line for each message."`
}

// Help is the text between the summary and the flags.
func (getCommand) Help() string {
	return `A message is "scheduled", "ready" (due, and no worker has it), "in flight" (a worker has it), "dead", or "done" while the queue still keeps its id. Changes nothing: no attempt is counted, and workers get messages meanwhile. A message that is not there is named on standard error, the others are shown all the same, and the exit code is then 3.`
}

// Validate is called by the parser.
func (c *getCommand) Validate() error { return validIDs(c.IDs) }

// gotAtOnce is how many messages are in memory together.
const gotAtOnce = 100

// Run shows the messages.
func (c *getCommand) Run(ctx context.Context, std streams) error {
	return c.use(ctx, std, func(q delayq.Queue) error {
		missing := 0
		for ids := range slices.Chunk(c.IDs, gotAtOnce) {
			ms, err := q.GetBatch(ctx, ids)
			errs, err := outcomesOf(err, len(ids))
			if err != nil {
				return err
			}
			var found []delayq.MessageInfo
			for i, err := range errs {
				if err == nil {
					found = append(found, ms[i])
					continue
				}
				missing++
				_, _ = fmt.Fprintf(std.err, "delayq: %q: %s\n", ids[i], shortError(err))
			}
			if err := c.show(std, found); err != nil {
				return err
			}
		}
		if missing > 0 {
			return fmt.Errorf("%d of %d: %w", missing, len(c.IDs), errPartly)
		}
		return nil
	})
}

func (c *getCommand) show(std streams, ms []delayq.MessageInfo) error {
	if c.JSON {
		return writeLines(std.out, ms, infoJSON)
	}
	return write(std.out, infoText(ms))
}

func infoText(ms []delayq.MessageInfo) string {
	var w strings.Builder
	for _, m := range ms {
		fmt.Fprintf(&w, "%s  %v\n", printable(m.ID), m.State)
		showTime(&w, "due", m.Due)
		showTime(&w, "lease until", m.LeaseUntil)
		showTime(&w, "died", m.Died)
		showTime(&w, "id taken until", m.UniqueUntil)
		if m.State == delayq.StateDone {
			continue
		}
		fmt.Fprintf(&w, "    attempts %d\n", m.Attempts)
		if m.State == delayq.StateDead {
			showReason(&w, m.Reason)
		}
		if m.Err != nil {
			misfit(&w, why(m.Err), m.Body)
			continue
		}
		showContent(&w, m.Headers, m.Body)
	}
	return w.String()
}

func showTime(w *strings.Builder, what string, t time.Time) {
	if !t.IsZero() {
		fmt.Fprintf(w, "    %s %s\n", what, at(t))
	}
}
