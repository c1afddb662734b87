package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/cmd/delayq/internal/human"
)

type deadCommand struct {
	List    deadListCommand    `cmd:"" help:"List dead letters, the oldest death first."`
	Redrive deadRedriveCommand `cmd:"" help:"Put dead letters back into the queue, due at once, their attempts counted from the start."`
	Delete  deadDeleteCommand  `cmd:"" help:"Delete dead letters for good."`
	Trim    deadTrimCommand    `cmd:"" help:"Delete the oldest dead letters, by age or number."`
}

type deadListCommand struct {
	namedQueue
	letterFilter
	Limit int  `default:"100" placeholder:"N" help:"How many to list, ${default} unless given (allowed: 1 to 1000000)."`
	JSON  bool `name:"json" help:"Write JSON, one line for each."`
}

// Validate is called by the parser.
func (c *deadListCommand) Validate() error { return c.read() }

// Run lists.
func (c *deadListCommand) Run(ctx context.Context, std streams) error {
	return c.use(ctx, std, func(q delayq.Queue) error {
		ls, more, err := first(ctx, c.selected(q.Dead()), c.Limit)
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
	fmt.Fprintf(&w, "%-*s  %8s  %s\n", stampWidth(), "DIED", "ATTEMPTS", "ID, REASON, BODY")
	for _, l := range ls {
		fmt.Fprintf(&w, "%-*s  %8d  %s\n", stampWidth(), at(l.Died), l.Attempts, printable(l.ID))
		showReason(&w, l.Reason)
		if l.Err != nil {
			misfit(&w, why(l.Err), l.Body)
			continue
		}
		showContent(&w, l.Headers, l.Body)
	}
	sayMore(&w, more, len(ls), "limit")
	return w.String()
}

// showReason shows the first line of a reason: a panic's has its stack below.
func showReason(w *strings.Builder, reason string) {
	reason, _, _ = strings.Cut(reason, "\n")
	for _, line := range folded("! "+printable(reason), page-4) {
		fmt.Fprintf(w, "    %s\n", line)
	}
}

// letterFilter selects dead letters by flags.
type letterFilter struct {
	OlderThan *time.Duration `placeholder:"DURATION" help:"Those that died longer ago than that by the clock of this machine, as 72h or 3d."`
	Reason    text           `placeholder:"TEXT" help:"Those whose reason begins with the text."`
	Header    []string       `sep:"none" placeholder:"KEY=VALUE" help:"Those with this header; may be repeated."`
	Type      text           `placeholder:"TYPE" help:"Those of this type, which is the header \"type\"."`

	filter delayq.DeadFilter
}

func (f *letterFilter) read() (err error) {
	f.filter.ReasonPrefix = string(f.Reason)
	if f.filter.Headers, err = headersOf(f.Header, f.Type); err != nil {
		return err
	}
	if f.OlderThan != nil {
		if *f.OlderThan <= 0 { // which would select all
			return errors.New("--older-than: allowed is more than 0")
		}
		f.filter.DiedBefore = time.Now().Add(-*f.OlderThan)
	}
	return nil
}

func (f *letterFilter) given() bool {
	return f.OlderThan != nil || f.Reason != "" || len(f.filter.Headers) > 0
}

// selected lists the letters that the flags select, all of them without flags.
func (f *letterFilter) selected(l delayq.DeadLetters) lister[delayq.DeadLetter] {
	return func(ctx context.Context, cursor string, limit int) ([]delayq.DeadLetter, string, error) {
		page, next, err := l.List(ctx, cursor, limit)
		page = slices.DeleteFunc(page, func(d delayq.DeadLetter) bool { return !f.filter.Matches(d) })
		return page, next, err
	}
}

// letters are some of a queue's, or all.
type letters struct {
	namedQueue
	letterFilter
	IDs  []string `arg:"" optional:"" name:"id" placeholder:"ID" help:"Those letters, as \"delayq dead list\" shows them."`
	All  bool     `help:"All that are dead now."`
	JSON bool     `name:"json" help:"Write a JSON line for each id."`
}

// Validate is called by the parser.
func (c *letters) Validate() error {
	if err := c.read(); err != nil {
		return err
	}
	ways := 0
	for _, given := range []bool{len(c.IDs) > 0, c.All, c.given()} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return errors.New("expected ids, or --all, or one or more of --older-than, --reason, --header and --type")
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

type deadTrimCommand struct {
	namedQueue
	MaxAge   time.Duration `placeholder:"DURATION" help:"Delete those that died so long ago by the store's clock, as 72h or 3d."`
	MaxCount int           `placeholder:"N" help:"Keep the N youngest letters, and delete the others."`
}

// Validate is called by the parser.
func (c *deadTrimCommand) Validate() error {
	if c.MaxAge == 0 && c.MaxCount == 0 {
		return errors.New("expected --max-age, --max-count or both")
	}
	return nil
}

// Run deletes.
func (c *deadTrimCommand) Run(ctx context.Context, std streams) error {
	return c.use(ctx, std, func(q delayq.Queue) error {
		n, err := q.Dead().Trim(ctx, c.MaxAge, c.MaxCount)
		if n > 0 || err == nil {
			err = errors.Join(err, write(std.out, human.Count(n, "dead letter")+" deleted\n"))
		}
		return err
	})
}

type onLetters func(l delayq.DeadLetters, ctx context.Context, ids ...string) error

func (c *letters) each(ctx context.Context, std streams, done string, do onLetters) error {
	return c.use(ctx, std, func(q delayq.Queue) error {
		ids := c.IDs
		listed := len(ids) == 0
		if listed {
			var err error
			if ids, err = c.allDead(ctx, q); err != nil {
				return err
			}
		}
		errs, err := inParts(std, done, ids, func(some []string) error { return do(q.Dead(), ctx, some...) })
		ids = ids[:len(errs)]
		if listed {
			ids, errs = stillThere(ids, errs)
		}
		return reportTried(std, done, ids, errs, c.JSON, err)
	})
}

// allDead lists before anything is redriven: a message that becomes dead again meanwhile is not
// redriven again.
func (c *letters) allDead(ctx context.Context, q delayq.Queue) (ids []string, err error) {
	selected := c.selected(q.Dead())
	ids, _, err = first(ctx, func(ctx context.Context, cursor string, limit int) (ids []string, next string, err error) {
		page, next, err := selected(ctx, cursor, limit)
		for _, l := range page { // their bodies need not be in memory together
			ids = append(ids, l.ID)
		}
		return ids, next, err
	}, math.MaxInt)
	return ids, err
}

// idsAtOnce is how many go to the store together.
const idsAtOnce = 500

// inParts returns the outcomes of the first ids, of all unless the store fails.
func inParts(std streams, done string, ids []string, do func(some []string) error) (errs []error, err error) {
	bar := newProgress(std, done, int64(len(ids)))
	defer bar.end()
	for n := 0; n < len(ids) && err == nil; n += idsAtOnce {
		part := ids[n:min(n+idsAtOnce, len(ids))]
		var some []error
		some, err = outcomesOf(do(part), len(part))
		errs = append(errs, some...)
		bar.add(int64(len(some)))
	}
	if n := len(errs); err != nil && 0 < n && n < len(ids) {
		err = fmt.Errorf("not tried from %q on: %w", ids[n], err)
	}
	return errs, err
}

// outcomesOf returns a call's outcome of each message, and the error of the store, if one failed. There
// are no outcomes if the whole call failed.
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
			return some.Errs, storeError{err}
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
