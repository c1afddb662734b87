package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/cmd/delayq/internal/human"
)

type purgeCommand struct {
	namedQueue
	Yes  bool `help:"Do not ask."`
	JSON bool `name:"json" help:"Write a JSON line."`
}

// Help is the text between the summary and the flags.
func (purgeCommand) Help() string {
	return `Deletes scheduled, ready and leased messages, dead letters, quarantined members, and ids that UniqueFor keeps, for every process. Workers finish the messages that they handle, and then get ErrLeaseLost.

On a queue shared with Java, Redisson's own keys go too, and with them Java's messages. Java's processes go on as on an empty queue.

On a terminal it asks first. Elsewhere it needs --yes.`
}

// Run deletes everything.
func (c *purgeCommand) Run(ctx context.Context, std streams) error {
	return c.use(ctx, std, func(q delayq.Queue) error {
		if err := c.confirm(ctx, q, std); err != nil {
			return err
		}
		n, err := q.Purge(ctx)
		if err != nil {
			return err
		}
		sum := fmt.Sprintf("deleted %d", n)
		if c.JSON {
			return doneUnwritten(std, sum, writeJSON(std.out, map[string]int64{"removed": n}))
		}
		return doneUnwritten(std, sum, write(std.out, sum+"\n"))
	})
}

func (c *purgeCommand) confirm(ctx context.Context, q delayq.Queue, std streams) error {
	switch {
	case c.Yes:
		return nil
	case !q.Supports(delayq.Purging):
		_, err := q.Purge(ctx) // which says so
		return err
	case !isTerminal(std.in):
		return errors.New("purge: expected --yes where there is no terminal")
	}
	what := "everything"
	if s, err := q.Stats(ctx); err == nil {
		what = human.Count(s.Scheduled+s.Ready+s.InFlight+s.Dead+s.Quarantined, "message")
	}
	_, _ = fmt.Fprintf(std.err, "Delete %s of %s? [y/N] ", what, shownURL(c.URL))
	return answered(ctx, std)
}

var errNotPurged = errors.New("nothing was deleted")

// answered waits for a yes. A signal is a no.
func answered(ctx context.Context, std streams) error {
	said := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(std.in).ReadString('\n')
		said <- strings.ToLower(strings.TrimSpace(text))
	}()
	select {
	case text := <-said:
		if text == "y" || text == "yes" {
			return nil
		}
		return errNotPurged
	case <-ctx.Done():
		return ctx.Err()
	}
}
