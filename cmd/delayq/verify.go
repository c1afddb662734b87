package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/backend/admin"
	"github.com/delayq/delayq/cmd/delayq/internal/human"
	"github.com/delayq/delayq/conformance"
)

type verifyCommand struct {
	namedQueue
	Only  string        `name:"run" placeholder:"REGEXP" help:"Run the checks whose names match, all of them unless given."`
	Slack time.Duration `default:"1s" help:"How late a message may be, because of machine and network, ${default} unless given (allowed: 10ms to 1m)."`
	Tick  time.Duration `placeholder:"DURATION" help:"The unit of delays and leases, 200ms unless given, or 400ms where leases end with a connection (allowed: 10ms to 1m). The slower the network, the longer it should be."`
	JSON  bool          `name:"json" help:"Write JSON, one line for each check, and one about them all."`
}

// Help is the text between the summary and the flags.
func (verifyCommand) Help() string {
	return `Runs delayq's own conformance suite against your server, in real time: on a loaded machine or a slow network give more --slack and --tick. It takes a few minutes.

It works in queues of its own, with random names, and on RabbitMQ in a namespace of its own; the queue that the URL names is never opened. At the end it deletes its queues, and names those that it could not delete. While it runs, the server holds some thousand messages more, some with bodies of 1 MiB.

A rule is "kept" if its check passes, and "broken", with the reason, if it fails. It is "not offered" if the backend does not claim it. It is "not judged" if the check could not finish: the store went away, or the codec takes only text and the check's bodies are bytes (codec=bytes takes all). Rules have the numbers of docs/guarantees.md. The exit code is 1 when one is broken, and 3 when one was not judged.`
}

// Validate is called by the parser.
func (c *verifyCommand) Validate() error {
	_, err := c.checks()
	return err
}

// checks are those that were asked for.
func (c *verifyCommand) checks() (some []conformance.Check, err error) {
	match, err := regexp.Compile(c.Only)
	if err != nil {
		return nil, fmt.Errorf("--run=%s: %w", c.Only, err)
	}
	for _, check := range conformance.Checks() {
		if match.MatchString(check.Name) {
			some = append(some, check)
		}
	}
	if len(some) == 0 {
		return nil, fmt.Errorf("--run=%s: no check is called that", c.Only)
	}
	return some, nil
}

// Run runs the suite.
func (c *verifyCommand) Run(ctx context.Context, std streams) error {
	var log *slog.Logger // the suite's, which is silent
	if c.Verbose {
		log = c.logger(std, slog.LevelDebug)
	}
	v := &verification{scratch: newScratch(c.URL, "verify", log), std: std}
	v.useNamespace()
	checks, err := c.checks()
	if err == nil {
		v.harness, err = c.harness(ctx, v.scratch)
	}
	if err != nil {
		return fromStore(err)
	}
	err = v.run(ctx, checks)
	err = errors.Join(err, v.clearUp(ctx), c.show(std.out, v))
	return errors.Join(err, v.verdict())
}

// clearWithin bounds the clearing up, also when the program was interrupted: RabbitMQ has some
// hundred queues to delete.
const clearWithin = 2 * time.Minute

func (v *verification) clearUp(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearWithin)
	defer cancel()
	v.left, err = v.clear(ctx)
	return fromStore(err)
}

// harness is how the suite gets at the store.
func (c *verifyCommand) harness(ctx context.Context, s *scratch) (conformance.Harness, error) {
	h := conformance.Harness{Prefix: s.prefix, Slack: c.Slack, Tick: c.Tick}
	h.New = func(ctx context.Context) (backend.Backend, func(), error) { b, err := s.open(ctx); return b, nil, err }
	h.Attach = func(ctx context.Context, _ backend.Backend) (backend.Backend, func(), error) { return h.New(ctx) }
	h.Leftovers = func(ctx context.Context, b backend.Backend) ([]string, error) { return b.(*fenced).left(ctx) }
	b, err := s.open(ctx)
	if err != nil {
		return h, err
	}
	defer func() { _ = b.Close() }()
	if b.Traits().Leases == backend.InConnection {
		h.Tick = cmp.Or(h.Tick, 400*time.Millisecond)
	}
	return h, adjust(ctx, &h, b.Backend)
}

// adjust allows for a store's clock that differs from this machine's, by which the suite judges.
func adjust(ctx context.Context, h *conformance.Harness, b backend.Backend) error {
	e, ok := b.(admin.Examiner)
	if !ok {
		return nil
	}
	x, err := e.Examine(ctx)
	if err != nil {
		return err
	}
	most := h.Slack
	for _, d := range x.Clocks {
		if d.Ahead.Abs() > most {
			return storeError{fmt.Errorf("%s: %s: the suite judges by this machine's clock, and allows for no more than --slack=%v", d.Server, d, most)}
		}
		h.Skew = max(h.Skew, d.Ahead.Abs()+d.Within)
	}
	h.Slack += h.Skew
	return nil
}

// A verification is one run of the suite.
type verification struct {
	*scratch
	std      streams
	harness  conformance.Harness
	verdicts []conformance.Verdict
	left     []string // in the store, though all was to be deleted
}

// run judges check by check, until the store is gone.
func (v *verification) run(ctx context.Context, checks []conformance.Check) error {
	defer v.say("")
	for i, c := range checks {
		v.say(fmt.Sprintf("%d of %d: %s", i+1, len(checks), c.Name))
		some, err := conformance.Judge(ctx, v.harness, c.Name)
		if err != nil {
			return err
		}
		verdict := some[0]
		if verdict.Err != nil && ctx.Err() == nil {
			if gone := v.gone(ctx); gone != nil {
				return fromStore(fmt.Errorf("check %s: %w", c.Name, gone))
			}
		}
		v.verdicts = append(v.verdicts, verdict)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// goneWithin bounds the question whether the store is there.
const goneWithin = 10 * time.Second

// gone tells whether the store has left in the midst of a check, which proves nothing then.
func (v *verification) gone(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, goneWithin)
	defer cancel()
	b, err := v.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }()
	q, err := b.Open(ctx, v.prefix+"there", backend.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	return q.Close()
}

// say shows progress on a terminal.
func (v *verification) say(text string) {
	if isTerminal(v.std.err) {
		_, _ = io.WriteString(v.std.err, "\r\x1b[K"+text)
	}
}

// errBroken says that rules are broken.
var errBroken = errors.New("broken")

// verdict sums up for the exit code.
func (v *verification) verdict() error {
	switch n := v.count(); {
	case n[conformance.Broken] > 0:
		return fmt.Errorf("%d of %s: %w", n[conformance.Broken], human.Count(len(v.verdicts), "rule"), errBroken)
	case n[conformance.NotJudged] > 0:
		return fmt.Errorf("%d of %s: %w", n[conformance.NotJudged], human.Count(len(v.verdicts), "rule"), errNotJudged)
	default:
		return nil
	}
}

var errNotJudged = fmt.Errorf("not judged: %w", errPartly)

func (v *verification) count() map[conformance.Outcome]int {
	n := make(map[conformance.Outcome]int)
	for _, one := range v.verdicts {
		n[one.Outcome()]++
	}
	return n
}
