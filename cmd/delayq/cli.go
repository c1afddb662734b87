package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/delayq/delayq/cmd/delayq/internal/demo"
)

// The exit codes; "delayq --help" shows them.
const (
	exitOK          = 0
	exitBroken      = 1
	exitUnusable    = 2
	exitInterrupted = 130 // 128 + SIGINT, as shells count
)

const description = `A delay queue keeps a message hidden until it is due, then hands it to one worker, until a worker says that it is done.

Exit codes: 0 all went well, 1 a promise was broken, 2 wrong usage, bad input or a store that fails, 130 interrupted.`

type cli struct {
	Demo     demoCommand     `cmd:"" help:"Watch a delay queue at work, or replay a file of messages through one."`
	Redisson redissonCommand `cmd:"" help:"Look into a queue that is shared with Java."`
}

// streams are where a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// run is the whole program but for the process around it; it returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	err := execute(ctx, args, streams{stdin, stdout, stderr})
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "delayq: "+strings.TrimPrefix(err.Error(), "delayq: "))
	}
	return exitCode(err)
}

func execute(ctx context.Context, args []string, std streams) error {
	helped := false
	parser, err := kong.New(&cli{},
		kong.Name("delayq"),
		kong.Description(description),
		kong.Writers(std.out, std.err),
		kong.Exit(func(int) { helped = true }),
		kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 100}),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(std),
	)
	if err != nil {
		return fmt.Errorf("reading the command line: %w", err)
	}
	command, err := parser.Parse(args)
	switch {
	case helped: // what the parser misses after --help is of no interest
		return nil
	case err != nil:
		return fmt.Errorf("%w (see %s --help)", err, helpful(err))
	}
	return command.Run()
}

// helpful is the command whose help explains a parser's error.
func helpful(err error) string {
	var wrong *kong.ParseError
	if errors.As(err, &wrong) && wrong.Context.Selected() != nil {
		return wrong.Context.Selected().FullPath()
	}
	return "delayq"
}

func exitCode(err error) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, demo.ErrBroken): // outranks what else went wrong
		return exitBroken
	case errors.Is(err, demo.ErrInterrupted), errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitUnusable
}
