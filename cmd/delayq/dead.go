package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/delayq/delayq"
)

type deadCommand struct {
	List    deadListCommand    `cmd:"" help:"List dead letters, the oldest death first."`
	Redrive deadRedriveCommand `cmd:"" help:"Put dead letters back into the queue, due at once, their attempts counted from the start."`
	Delete  deadDeleteCommand  `cmd:"" help:"Delete dead letters for good."`
}

type deadListCommand struct {
	namedQueue
	Limit int  `default:"100" placeholder:"N" help:"How many to list, ${default} unless given (allowed: 1 to 1000000)."`
	JSON  bool `name:"json" help:"Write JSON, one line for each."`
}

// Validate is called by the parser.
func (c *deadListCommand) Validate() error { return validLimit(c.Limit) }

// Run lists.
func (c *deadListCommand) Run(ctx context.Context, std streams) error {
	return c.use(ctx, std, func(q delayq.Queue) error {
		ls, more, err := first(ctx, q.Dead().List, c.Limit)
		if err != nil {
			return err
		}
		if c.JSON {
			return writeLines(std.out, ls, deadJSON)
		}
		return write(std.out, deadText(ls, more))
	})
}

func deadText(ls []delayq.DeadLetter, more bool) string {
	if len(ls) == 0 {
		return "There are no dead letters.\n"
	}
	var w strings.Builder
	fmt.Fprintf(&w, "%-24s  %8s  %s\n", "DIED", "ATTEMPTS", "ID, REASON, BODY")
	for _, l := range ls {
		fmt.Fprintf(&w, "%s  %8d  %s\n", at(l.Died), l.Attempts, printable(l.ID))
		reason, _, _ := strings.Cut(l.Reason, "\n") // a panic's has its stack below
		for _, line := range folded("! "+printable(reason), page-4) {
			fmt.Fprintf(&w, "    %s\n", line)
		}
		showContent(&w, l.Headers, l.Body)
	}
	if more {
		fmt.Fprintf(&w, "There are more than these %d; --limit=N shows them.\n", len(ls))
	}
	return w.String()
}

// letters are some of a queue's, or all.
type letters struct {
	namedQueue
	IDs  []string `arg:"" optional:"" name:"id" placeholder:"ID" help:"Those letters, as \"delayq dead list\" shows them."`
	All  bool     `help:"All that are dead now."`
	JSON bool     `name:"json" help:"Write a JSON line for each id."`
}

// Validate is called by the parser.
func (c *letters) Validate() error {
	if c.All == (len(c.IDs) > 0) {
		return errors.New("expected ids, or --all without ids")
	}
	return validIDs(c.IDs)
}

type deadRedriveCommand struct{ letters }

// Run puts letters back.
func (c *deadRedriveCommand) Run(ctx context.Context, std streams) error {
	return c.each(ctx, std, "redriven", delayq.DeadLetters.Redrive)
}

type deadDeleteCommand struct{ letters }

// Run deletes letters.
func (c *deadDeleteCommand) Run(ctx context.Context, std streams) error {
	return c.each(ctx, std, "deleted", delayq.DeadLetters.Delete)
}

type onLetters func(l delayq.DeadLetters, ctx context.Context, ids ...string) error

func (c *letters) each(ctx context.Context, std streams, done string, do onLetters) error {
	return c.use(ctx, std, func(q delayq.Queue) error {
		ids := c.IDs
		if c.All {
			var err error
			if ids, err = allDead(ctx, q); err != nil {
				return err
			}
		}
		ids, errs, err := inParts(ctx, q.Dead(), ids, do, newProgress(std, done, int64(len(ids))))
		if err != nil {
			return fmt.Errorf("%s %d: %w", done, len(ids), err)
		}
		if c.All {
			ids, errs = stillThere(ids, errs)
		}
		return reportOutcomes(std, done, ids, errs, c.JSON)
	})
}

// allDead lists before anything is redriven: a message that becomes dead again meanwhile is not
// redriven again.
func allDead(ctx context.Context, q delayq.Queue) (ids []string, err error) {
	ls, _, err := first(ctx, q.Dead().List, math.MaxInt)
	for _, l := range ls {
		ids = append(ids, l.ID)
	}
	return ids, err
}

// lettersAtOnce is how many go to the store together.
const lettersAtOnce = 500

// inParts returns the ids that were processed, and the outcome of each.
func inParts(ctx context.Context, l delayq.DeadLetters, ids []string, do onLetters, bar *progress) ([]string, []error, error) {
	defer bar.end()
	var errs []error
	for n := 0; n < len(ids); n += lettersAtOnce {
		part := ids[n:min(n+lettersAtOnce, len(ids))]
		some, err := outcomesOf(do(l, ctx, part...), len(part))
		if err != nil {
			return ids[:n], errs, err
		}
		errs = append(errs, some...)
		bar.add(int64(len(part)))
	}
	return ids, errs, nil
}

// outcomesOf returns a call's outcome of each message, or the error of the whole call.
func outcomesOf(err error, n int) ([]error, error) {
	var some *delayq.BatchError
	switch {
	case err == nil:
		return make([]error, n), nil
	case !errors.As(err, &some):
		return nil, err
	}
	for _, err := range some.Errs {
		if err != nil && !isAny(err, storeReplies...) {
			return nil, storeError{err}
		}
	}
	return some.Errs, nil
}

// stillThere leaves out messages that another process has removed since they were listed.
func stillThere(ids []string, errs []error) (there []string, outcomes []error) {
	for i, err := range errs {
		if !errors.Is(err, delayq.ErrNotFound) {
			there, outcomes = append(there, ids[i]), append(outcomes, err)
		}
	}
	return there, outcomes
}
