package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/delayq/delayq"
)

type statsCommand struct {
	namedQueue
	Watch bool          `help:"Count again and again until a signal ends the program."`
	Every time.Duration `default:"1s" help:"How often with --watch, ${default} unless given (allowed: 100ms to 1h)."`
	JSON  bool          `name:"json" help:"Write JSON, one line each time."`
}

// Help is the text between the summary and the flags.
func (statsCommand) Help() string {
	return `"scheduled" wait for their time, "ready" are due and wait for a worker, "in flight" are leased to one, "dead" are dead letters, and "quarantined" are members that other programs wrote and no codec can read. "head due" is the earliest due time of a scheduled or ready message; when that is past, workers are behind.

With --watch a terminal shows the counts in place; elsewhere they are one line each time. In JSON there is no "head_due" where no message waits.`
}

// Validate is called by the parser.
func (c *statsCommand) Validate() error {
	if c.Every < 100*time.Millisecond || c.Every > time.Hour {
		return fmt.Errorf("--every=%v: allowed is 100ms to 1h", c.Every)
	}
	return nil
}

// Run counts.
func (c *statsCommand) Run(ctx context.Context, std streams) error {
	return c.use(ctx, std, func(q delayq.Queue) error {
		s, err := q.Stats(ctx)
		if err != nil {
			return err
		}
		switch {
		case c.Watch:
			return c.watch(ctx, q, std, s)
		case c.JSON:
			return writeJSON(std.out, statsDocument(s, time.Now()), "")
		}
		return write(std.out, statsTable(s, time.Now()))
	})
}

// watch shows the counts until ctx ends, which is no failure.
func (c *statsCommand) watch(ctx context.Context, q delayq.Queue, std streams, s delayq.Stats) error {
	t := time.NewTicker(c.Every)
	defer t.Stop()
	live := !c.JSON && isTerminal(std.out)
	for lines := 0; ; {
		text, err := c.frame(s, live, &lines)
		if err == nil {
			err = write(std.out, text)
		}
		if err != nil {
			return err
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil
		}
		if s, err = q.Stats(ctx); err != nil && ctx.Err() != nil {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// frame is the current table. On a terminal it replaces the previous one.
func (c *statsCommand) frame(s delayq.Stats, live bool, lines *int) (string, error) {
	now := time.Now()
	switch {
	case c.JSON:
		text, err := line(statsDocument(s, now))
		return string(text), err
	case !live:
		return fmt.Sprintf("%s  scheduled %d  ready %d  in flight %d  dead %d  quarantined %d  head due %s\n",
			at(now), s.Scheduled, s.Ready, s.InFlight, s.Dead, s.Quarantined, headText(s, now)), nil
	}
	text := statsTable(s, now)
	back := ""
	if *lines > 0 {
		back = fmt.Sprintf("\x1b[%dA\x1b[J", *lines)
	}
	*lines = strings.Count(text, "\n")
	return back + text, nil
}

func statsTable(s delayq.Stats, now time.Time) string {
	var b strings.Builder
	for _, row := range []struct {
		what string
		n    int64
	}{{"scheduled", s.Scheduled}, {"ready", s.Ready}, {"in flight", s.InFlight}, {"dead", s.Dead}, {"quarantined", s.Quarantined}} {
		fmt.Fprintf(&b, "%-12s %12d\n", row.what, row.n)
	}
	fmt.Fprintf(&b, "%-12s %s\n", "head due", headText(s, now))
	return b.String()
}

// headText says when the next message is due, by the clock of this machine.
func headText(s delayq.Stats, now time.Time) string {
	if s.HeadDue.IsZero() {
		return "-"
	}
	if wait := s.HeadDue.Sub(now); wait > 0 {
		return fmt.Sprintf("%s (in %v)", at(s.HeadDue), rounded(wait))
	}
	return fmt.Sprintf("%s (%v ago)", at(s.HeadDue), rounded(now.Sub(s.HeadDue)))
}

func rounded(d time.Duration) time.Duration {
	if d > time.Minute {
		return d.Round(time.Second)
	}
	return d.Round(time.Millisecond)
}

// statsJSON are counts at a time by the clock of this machine.
type statsJSON struct {
	Time        time.Time  `json:"time"`
	Scheduled   int64      `json:"scheduled"`
	Ready       int64      `json:"ready"`
	InFlight    int64      `json:"in_flight"`
	Dead        int64      `json:"dead"`
	Quarantined int64      `json:"quarantined"`
	HeadDue     *time.Time `json:"head_due,omitempty"`
}

func statsDocument(s delayq.Stats, now time.Time) statsJSON {
	doc := statsJSON{
		Time: now.UTC(), Scheduled: s.Scheduled, Ready: s.Ready, InFlight: s.InFlight, Dead: s.Dead, Quarantined: s.Quarantined,
	}
	if !s.HeadDue.IsZero() {
		doc.HeadDue = writable(s.HeadDue)
	}
	return doc
}
