package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os/exec"
	"strings"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/cmd/delayq/internal/human"
)

type consumeCommand struct {
	namedQueue
	Exec        bool          `help:"Run the command after -- for each message, instead of printing it."`
	Command     []string      `arg:"" optional:"" name:"command" placeholder:"COMMAND" help:"The command and its arguments, after --."`
	Workers     int           `default:"1" placeholder:"N" help:"How many messages are handled at once, ${default} unless given."`
	Lease       time.Duration `default:"30s" help:"How long this process may be silent before another worker gets its messages, ${default} unless given; a lease is renewed while its message is handled."`
	Timeout     time.Duration `placeholder:"DURATION" help:"How long a message may take. Then its command is ended, and the message has failed."`
	Drain       time.Duration `default:"30s" help:"How long the first signal lets commands go on, ${default} unless given."`
	Retry       retryFlag     `default:"exponential" placeholder:"POLICY" help:"How long a message waits after its first failure, its second, and so on: a list of delays, as 10s,1m,1h, whose last one repeats; or exponential, which is 1s, twice as long each time, up to 10m; or exponential:BASE,MAX."`
	MaxAttempts *int          `placeholder:"N" help:"After how many failures a message is dead, 25 unless given; 0 is never."`
	Rate        *float64      `placeholder:"N" help:"How many messages a second at most."`
	Count       int64         `placeholder:"N" help:"Stop after so many messages, handled well or not."`
	Idle        time.Duration `placeholder:"DURATION" help:"Stop when nothing came for that long."`
}

// Help is the text between the summary and the flags.
func (consumeCommand) Help() string {
	return `Each message is printed as one line of JSON, and is acknowledged once the line is written; on Linux, once the reader of a pipe has read it. A message whose line is not read goes back, and the attempt does not count. "body" is JSON if the body is a JSON object or array, and a string if it is other text. "body_base64" has the bytes of any other body. JSON of several lines has both.

With --exec a command is run for each message, with the body as its standard input:

    delayq consume URL --exec --workers=8 --retry=10s,1m,1h -- ./handle.sh --fast

Its environment has DELAYQ_ID, DELAYQ_ATTEMPT and DELAYQ_DUE. DELAYQ_HEADERS is a JSON object of the headers whose values are UTF-8, if it is not too long. Each header also has a variable of its own: lang-x is DELAYQ_HEADER_LANG_X, with _ for each character that is no letter or digit. If two headers share a variable, it has the value of the name that sorts last. The command's output goes where the program's own output goes. The exit status decides about the message, which

  -  0   is done
  -  65  is dead-lettered at once (EX_DATAERR): trying again would not help
  -  75  comes again by --retry (EX_TEMPFAIL), as with any other status, or when a signal ends the command

After --max-attempts it is dead-lettered. The reason of a dead letter has the last part of the command's standard error.

The first SIGINT or SIGTERM lets running handlers finish, for as long as --drain says, and takes no more messages. Messages that were not handled are given back untouched, and the exit code is 0. The second signal ends everything at once, commands too: their messages are redelivered when the leases end.`
}

// Validate is called by the parser.
func (c *consumeCommand) Validate() error {
	switch {
	case c.Exec && len(c.Command) == 0:
		return errors.New("--exec: expected a command after --")
	case !c.Exec && len(c.Command) > 0:
		return fmt.Errorf("unexpected argument %s: a command needs --exec", c.Command[0])
	case c.Count < 0 || c.Idle < 0 || c.Timeout < 0:
		return errors.New("--count, --idle and --timeout: allowed is 0 or more")
	case c.Rate != nil && (!(*c.Rate > 0) || math.IsInf(*c.Rate, 1)):
		return fmt.Errorf("--rate=%g: allowed is more than 0, and finite", *c.Rate)
	}
	return nil
}

// Run consumes.
func (c *consumeCommand) Run(ctx context.Context, std streams) error {
	if c.Exec {
		path, err := exec.LookPath(c.Command[0])
		if err != nil {
			return fmt.Errorf("--exec: %w", err)
		}
		c.Command[0] = path
	}
	work := func(q delayq.Queue) error { return newWork(c, q, std).run(ctx) }
	return c.useWith(ctx, work, delayq.WithLogger(c.logger(std, slog.LevelWarn)), delayq.WithLease(c.Lease))
}

func (c *consumeCommand) options(workers int) []delayq.ConsumeOption {
	opts := []delayq.ConsumeOption{delayq.Workers(workers), delayq.Drain(c.Drain)}
	if c.Retry.policy != nil {
		opts = append(opts, delayq.Retry(c.Retry.policy))
	}
	if c.MaxAttempts != nil {
		opts = append(opts, delayq.MaxAttempts(*c.MaxAttempts))
	}
	if c.Timeout > 0 {
		opts = append(opts, delayq.Timeout(c.Timeout))
	}
	return opts
}

const (
	burstsPerSecond = 10 // a rate is shared out over the second
	mostInBurst     = 1000
)

func rateOption(perSecond float64) delayq.ConsumeOption {
	return delayq.RateLimit(perSecond, int(min(max(perSecond/burstsPerSecond, 1), mostInBurst)))
}

// retryFlag is a policy as text; nil is the library's own.
type retryFlag struct{ policy delayq.RetryPolicy }

// UnmarshalText is called by the parser.
func (r *retryFlag) UnmarshalText(text []byte) error {
	kind, list, custom := strings.Cut(string(text), ":")
	if kind != "exponential" {
		list = string(text)
	} else if !custom {
		return nil
	}
	var delays delayq.Delays
	for _, part := range strings.Split(list, ",") {
		d, err := human.Duration(strings.TrimSpace(part))
		if err != nil || d < 0 {
			return fmt.Errorf("%q: allowed are delays, as 10s,1m,1h, or exponential, or exponential:BASE,MAX", text)
		}
		delays = append(delays, d)
	}
	r.policy = delays
	if kind == "exponential" {
		if len(delays) != 2 {
			return fmt.Errorf("%q: allowed is exponential:BASE,MAX", text)
		}
		r.policy = delayq.Exponential(delays[0], delays[1])
	}
	return nil
}
