package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/delayq/delayq"
)

type cancelCommand struct {
	namedQueue
	IDs  []string `arg:"" name:"id" placeholder:"ID" help:"The messages."`
	JSON bool     `name:"json" help:"Write a JSON line for each id."`
}

// Help is the text between the summary and the flags.
func (cancelCommand) Help() string {
	return `A cancelled message is never handed out. A message that is in flight, done, dead or unknown cannot be cancelled: it is named on standard error, and the exit code is 3. The others are cancelled all the same.`
}

// Validate is called by the parser.
func (c *cancelCommand) Validate() error { return validIDs(c.IDs) }

// Run cancels.
func (c *cancelCommand) Run(ctx context.Context, std streams) error {
	return c.use(ctx, std, func(q delayq.Queue) error {
		return onIDs(std, "cancelled", c.IDs, c.JSON, func(ids []string) error { return q.CancelBatch(ctx, ids) })
	})
}

// onIDs makes calls on many ids, and prints their outcomes.
func onIDs(std streams, done string, ids []string, asJSON bool, do func(some []string) error) error {
	errs, err := inParts(std, done, ids, do)
	return reportTried(std, done, ids[:len(errs)], errs, asJSON, err)
}

// reportTried reports the outcomes of the ids that were tried before the store failed, if it did.
func reportTried(std streams, done string, ids []string, errs []error, asJSON bool, failed error) error {
	if failed != nil && len(errs) == 0 {
		return failed
	}
	err := reportOutcomes(std, done, ids, errs, asJSON)
	if failed == nil || isUnwritten(err) {
		return errors.Join(err, failed)
	}
	return failed
}

// outcomeJSON is an id's outcome.
type outcomeJSON struct {
	ID    string `json:"id"`
	Done  bool   `json:"done"`
	Error string `json:"error,omitempty"`
}

// reportOutcomes prints how many things were done, or a JSON line for each, and names the others.
func reportOutcomes(std streams, done string, ids []string, errs []error, asJSON bool) error {
	n := 0
	var unwritten error
	for i, err := range errs {
		if asJSON && unwritten == nil {
			unwritten = outcomeLine(std.out, ids[i], err)
		}
		if err == nil {
			n++
			continue
		}
		_, _ = fmt.Fprintf(std.err, "delayq: %q: %s\n", ids[i], shortError(err))
	}
	sum := fmt.Sprintf("%s %d", done, n)
	if !asJSON {
		unwritten = write(std.out, sum+"\n")
	}
	if unwritten != nil {
		return doneUnwritten(std, sum, unwritten)
	}
	if n < len(ids) {
		return fmt.Errorf("%d of %d: %w", len(ids)-n, len(ids), errPartly)
	}
	return nil
}

// shortError is an error without the call's name and id.
func shortError(err error) string {
	var op *delayq.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return err.Error()
}

func outcomeLine(w io.Writer, id string, err error) error {
	doc := outcomeJSON{ID: id, Done: err == nil}
	if err != nil {
		doc.Error = shortError(err)
	}
	return writeJSON(w, doc)
}

type rescheduleCommand struct {
	namedQueue
	IDs   []string       `arg:"" name:"id" placeholder:"ID" help:"The messages."`
	After *time.Duration `placeholder:"DURATION" help:"Due that long from now by the store's clock, as 1.5s, 30m, 1d12h or 2w."`
	At    *time.Time     `placeholder:"TIME" help:"Due at that time, as \"2030-01-31 18:00\", \"tomorrow 9:00\" or 2030-01-31T18:00:00Z."`
	JSON  bool           `name:"json" help:"Write a JSON line for each id."`
}

// Help is the text between the summary and the flags.
func (rescheduleCommand) Help() string {
	return `The new time may be sooner or later; a time in the past makes a message due at once. The rest of the message stays as it is. A message that is in flight, done, dead or unknown cannot be moved: it is named on standard error, and the exit code is 3. The others are moved all the same.`
}

// Validate is called by the parser.
func (c *rescheduleCommand) Validate() error {
	if (c.After == nil) == (c.At == nil) {
		return errors.New("expected one of --after and --at")
	}
	return validIDs(c.IDs)
}

// Run moves the messages.
func (c *rescheduleCommand) Run(ctx context.Context, std streams) error {
	var to delayq.Move
	if c.At != nil {
		to.Due = *c.At
	} else {
		to.Delay = *c.After
	}
	return c.use(ctx, std, func(q delayq.Queue) error {
		return onIDs(std, "rescheduled", c.IDs, c.JSON, func(ids []string) error {
			moves := make([]delayq.Move, len(ids))
			for i, id := range ids {
				moves[i] = to
				moves[i].ID = id
			}
			return q.RescheduleBatch(ctx, moves)
		})
	})
}
