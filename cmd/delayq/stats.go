package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/cmd/delayq/internal/human"
)

type statsCommand struct {
	namedQueue
	Watch bool          `help:"Count again and again until a signal ends the program."`
	Every time.Duration `default:"1s" help:"How often with --watch, ${default} unless given (allowed: 100ms to 1h)."`
	JSON  bool          `name:"json" help:"Write JSON, one line each time."`
}

// Help is the text between the summary and the flags.
func (statsCommand) Help() string {
	return `"scheduled" messages are not due yet. "ready" ones are due and wait for a worker. "in flight" ones are leased to a worker. "dead" are dead letters. "quarantined" are members that other programs wrote and no codec can read. "head due" is the earliest due time of a scheduled or ready message. If it has passed, workers are behind, unless the queue is "paused". "oldest ready" is how long ago the oldest ready message was due, by the store's clock.

"due in 1m" are scheduled messages that fall due within a minute. "due in 10m" are those due after one minute and within ten. So each message is counted once. A number with "~" is estimated from a sample, as in a queue in memory with many messages.

With --watch a terminal shows the counts in place; elsewhere they are one line each time. In JSON there is no "head_due" where no message waits. "pushed" and "acked" are how many messages were stored and acknowledged, and "lateness" how many came to workers within 1, 2, 5, 10, 20, 50, 100, 200 and 500 ms, 1, 2, 5 and 10 s, a minute, 10 minutes, an hour, and later. They are there for rates, and may begin at 0 again.

RabbitMQ keeps the scheduled messages of all queues together, and cannot count those of one queue. Their number is "unknown", or null in JSON. So are "pushed", "acked" and "lateness", the number of messages in flight without ?management=HOST:PORT, and that of dead letters while a program reads them.`
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
			return writeJSON(std.out, statsDocument(s, time.Now()))
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
		pause := ""
		if s.Paused {
			pause = "  " + pauseText(s)
		}
		return fmt.Sprintf("%s  scheduled %v  ready %v  in flight %v  dead %v  quarantined %v  head due %s  oldest ready %v%s\n",
			at(now), count(s.Scheduled), count(s.Ready), count(s.InFlight), count(s.Dead), count(s.Quarantined), headText(s, now), oldestText(s), pause), nil
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
		n    count
	}{{"scheduled", count(s.Scheduled)}, {"ready", count(s.Ready)}, {"in flight", count(s.InFlight)}, {"dead", count(s.Dead)}, {"quarantined", count(s.Quarantined)}} {
		fmt.Fprintf(&b, "%-12s %12v\n", row.what, row.n)
	}
	fmt.Fprintf(&b, "%-12s %s\n%-12s %v\n", "head due", headText(s, now), "oldest ready", oldestText(s))
	about := ""
	if s.DueEstimated {
		about = "~"
	}
	for i, label := range backend.DueLabels() {
		what := "due in " + label
		if i == len(s.Due)-1 {
			what = "due " + label
		}
		fmt.Fprintf(&b, "%-12s %12s\n", what, about+count(s.Due[i]).String())
	}
	if s.Paused {
		b.WriteString(pauseText(s) + "\n")
	}
	return b.String()
}

// headText says when the next message is due, by the clock of this machine.
func headText(s delayq.Stats, now time.Time) string {
	if s.HeadDue.IsZero() {
		return "-"
	}
	if wait := s.HeadDue.Sub(now); wait > 0 {
		return fmt.Sprintf("%s (in %s)", at(s.HeadDue), rounded(wait))
	}
	return fmt.Sprintf("%s (%s ago)", at(s.HeadDue), rounded(now.Sub(s.HeadDue)))
}

// A count is unknown where the store cannot count: null in JSON.
type count int64

func (c count) String() string {
	if c == delayq.Unknown {
		return "unknown"
	}
	return strconv.FormatInt(int64(c), 10)
}

// MarshalJSON is as in json.Marshaler.
//
//nolint:unparam // the interface asks for an error
func (c count) MarshalJSON() ([]byte, error) {
	if c == delayq.Unknown {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, int64(c), 10), nil
}

func oldestText(s delayq.Stats) string {
	if s.OldestReady == delayq.Unknown {
		return "unknown"
	}
	return rounded(s.OldestReady)
}

func rounded(d time.Duration) string {
	if d > time.Minute {
		return human.Brief(d.Round(time.Second))
	}
	return human.Brief(d.Round(time.Millisecond))
}

// statsJSON are counts at a time by the clock of this machine.
type statsJSON struct {
	Time        time.Time  `json:"time"`
	Scheduled   count      `json:"scheduled"`
	Ready       count      `json:"ready"`
	InFlight    count      `json:"in_flight"`
	Dead        count      `json:"dead"`
	Quarantined count      `json:"quarantined"`
	Pushed      count      `json:"pushed"`
	Acked       count      `json:"acked"`
	Lateness    []int64    `json:"lateness"` // by backend.LatenessBounds
	HeadDue     *time.Time `json:"head_due,omitempty"`
	pauseJSON

	OldestReady  *float64         `json:"oldest_ready_seconds"`
	Due          map[string]count `json:"due"` // by backend.DueLabels
	DueEstimated bool             `json:"due_estimated,omitempty"`
}

func statsDocument(s delayq.Stats, now time.Time) statsJSON {
	doc := statsJSON{
		Time: now.UTC(), Scheduled: count(s.Scheduled), Ready: count(s.Ready), InFlight: count(s.InFlight), Dead: count(s.Dead),
		Quarantined: count(s.Quarantined), Pushed: count(s.Activity.Pushed), Acked: count(s.Activity.Acked), Due: make(map[string]count), DueEstimated: s.DueEstimated,
		pauseJSON: pauseDocument(s),
	}
	if s.Activity.Pushed != delayq.Unknown {
		doc.Lateness = s.Activity.Lateness[:]
	}
	if s.OldestReady != delayq.Unknown {
		seconds := s.OldestReady.Seconds()
		doc.OldestReady = &seconds
	}
	for i, label := range backend.DueLabels() {
		doc.Due[label] = count(s.Due[i])
	}
	if !s.HeadDue.IsZero() {
		doc.HeadDue = writable(s.HeadDue)
	}
	return doc
}
