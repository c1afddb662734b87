package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"time"

	"github.com/delayq/delayq/cmd/delayq/internal/demo"
)

type demoCommand struct {
	Speed    float64       `default:"1" placeholder:"FACTOR" help:"How many times as fast, ${default} unless given. The scenes take about 15 s at 1 (allowed: 0.01 to 100). With --input, 1 is real time and 600 makes 10 minutes a second (allowed: 0.001 to 10000000)."`
	Input    string        `placeholder:"FILE.jsonl" help:"Replay the messages in this file instead of the scenes; \"-\" is standard input."`
	URL      string        `name:"url" placeholder:"URL" help:"The queue to run on, one that no other program uses. By default a new one in memory: memory:///demo-…"`
	Workers  int           `default:"8" help:"How many messages are handled at once (allowed: 1 to 10000)."`
	Patience time.Duration `default:"10s" help:"How long nothing may happen, once all messages are due, before missing ones count as lost (allowed: 10ms to 1h)."`
	Verbose  bool          `help:"Show the library's own log on standard error."`
}

// Help is the text between the summary and the flags of "delayq demo --help".
func (demoCommand) Help() string {
	return `Plays six scenes:

  - orders that are not paid for 30 minutes cancel themselves
  - a merchant has 5 minutes to accept an order
  - a review falls back to its default after 7 days
  - a worker dies while it handles a message
  - a message that always fails is dead-lettered, and redriven once the bug is fixed
  - a process is killed with -9, and the next goes on with its SQLite file, which is a temporary one whatever --url says

Each scene has a time scale of its own, which its title names. --speed multiplies them all. Leases and retries of the last three scenes run in real time, divided by --speed.

The last line is the summary. It counts the promises that were broken, and the exit code is 1 if there are any:

  - early: handed out before the due time
  - lost: never handled, cancelled or made a dead letter
  - duplicates: handed out again with no failure and no dead worker to explain it
  - fired-after-cancel: handed out though cancelling it had succeeded
  - altered: handed out with another body than the pushed one
  - left: still in the store at the end

The demo judges by its own record and this machine's clocks, not by the queue's counts. "lateness" is from the due time to the first hand-out. Without losses, pushed = handled + cancelled + dead - redriven.

Each line of --input is one message, with the fields that "delayq push" takes (see its help):

    {"id": "order-17", "after": "30m", "body": {"total": 12}}
    {"due": "2030-01-31 18:00", "body": "renew the licence"}

"after" counts from the push; "due" is kept relative to the start of the replay; with neither, a message is due at once. Both waits are divided by --speed. "limits" are read, and not applied. A file with a bad line is rejected as a whole.`
}

// Validate is called by the parser. Faster, the scenes could not be told apart from a race.
func (c *demoCommand) Validate() error {
	low, high, which := 0.01, 100.0, "for the scenes"
	if c.Input != "" {
		low, high, which = 0.001, 10_000_000, "with --input"
	}
	if allowed := c.Speed >= low && c.Speed <= high; !allowed { // nor is NaN
		return fmt.Errorf("--speed=%g: allowed %s is %.10g to %.10g", c.Speed, which, low, high)
	}
	return nil
}

// Run plays the demo.
func (c *demoCommand) Run(ctx context.Context, std streams) error {
	logger := slog.New(slog.DiscardHandler)
	if c.Verbose {
		logger = slog.New(slog.NewTextHandler(std.err, nil))
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	err := demo.Run(ctx, demo.Config{
		URL:      c.URL,
		Speed:    c.Speed,
		Workers:  c.Workers,
		Patience: c.Patience,
		Input:    c.Input,
		Stdin:    std.in,
		Out:      tolerantWriter{std.out, stop},
		Color:    colored(std.out),
		Logger:   logger,
		Self:     program,
	})
	if cause := context.Cause(ctx); isUnwritten(cause) {
		return errors.Join(cause, err)
	}
	return err
}

// program is this program with other arguments, not yet started.
var program = func(ctx context.Context, args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return exec.CommandContext(ctx, self, args...)
}

// A doomedCommand is the process that the demo kills.
type doomedCommand struct {
	URL   string        `arg:""`
	Lease time.Duration `arg:""`
}

// Run does what is done before the end.
func (c *doomedCommand) Run(ctx context.Context, std streams) error {
	return demo.Doomed(ctx, c.URL, c.Lease, std.in, std.out)
}

// colored follows no-color.org. A character device that is no terminal, such as /dev/null, does
// not mind the colours.
func colored(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
