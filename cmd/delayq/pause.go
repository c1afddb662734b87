package main

import (
	"context"
	"errors"
	"time"

	"github.com/delayq/delayq"
)

type pauseCommand struct {
	namedQueue
	For   *time.Duration `placeholder:"DURATION" help:"End the pause that long from now, by the store's clock, as 90s, 30m or 720h."`
	Until *time.Time     `placeholder:"TIME" help:"End the pause at that time, as 2030-01-31T18:00:00Z."`
	JSON  bool           `name:"json" help:"Write a JSON line."`
}

// Help is the text between the summary and the flags.
func (pauseCommand) Help() string {
	return `No worker of any process gets a message until "delayq resume", or until the end that --for or --until gives. Pushes, cancels and running handlers go on. The store keeps the pause: it outlasts this program, the workers and "delayq purge". A second pause replaces the end of the first.

On a queue shared with Java, Java's workers go on.`
}

// Validate is called by the parser.
func (c *pauseCommand) Validate() error {
	if c.For != nil && c.Until != nil {
		return errors.New("expected one of --for and --until, or neither")
	}
	return nil
}

// Run pauses.
func (c *pauseCommand) Run(ctx context.Context, std streams) error {
	var opts []delayq.PauseOption
	if c.For != nil {
		opts = append(opts, delayq.PauseFor(*c.For))
	}
	if c.Until != nil {
		opts = append(opts, delayq.PauseUntil(*c.Until))
	}
	return c.use(ctx, std, func(q delayq.Queue) error {
		if err := q.PauseAll(ctx, opts...); err != nil {
			return err
		}
		return showPause(ctx, q, std, c.JSON)
	})
}

type resumeCommand struct {
	namedQueue
	JSON bool `name:"json" help:"Write a JSON line."`
}

// Help is the text between the summary and the flags.
func (resumeCommand) Help() string {
	return `Workers of all processes get what is due at once. Without a pause it does nothing.`
}

// Run resumes.
func (c *resumeCommand) Run(ctx context.Context, std streams) error {
	return c.use(ctx, std, func(q delayq.Queue) error {
		if err := q.ResumeAll(ctx); err != nil {
			return err
		}
		return showPause(ctx, q, std, c.JSON)
	})
}

// showPause prints the pause as the store has it now.
func showPause(ctx context.Context, q delayq.Queue, std streams, asJSON bool) error {
	s, err := q.Stats(ctx)
	if err != nil {
		return err
	}
	sum := pauseText(s)
	if asJSON {
		return doneUnwritten(std, sum, writeJSON(std.out, pauseDocument(s)))
	}
	return doneUnwritten(std, sum, write(std.out, sum+"\n"))
}

func pauseText(s delayq.Stats) string {
	switch {
	case !s.Paused:
		return "not paused"
	case s.PausedUntil.IsZero():
		return "paused until a resume"
	default:
		return "paused until " + at(s.PausedUntil)
	}
}

// pauseJSON is a pause; until is left out where it has no end.
type pauseJSON struct {
	Paused      bool       `json:"paused"`
	PausedUntil *time.Time `json:"paused_until,omitempty"`
}

func pauseDocument(s delayq.Stats) pauseJSON {
	doc := pauseJSON{Paused: s.Paused}
	if !s.PausedUntil.IsZero() {
		doc.PausedUntil = writable(s.PausedUntil)
	}
	return doc
}
