package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

const description = `A delay queue keeps a message hidden until it is due, then hands it to one worker, until a worker says that it is done.

URL names a backend and a queue, as in redisson://HOST:6379/QUEUE, zsetpoll://HOST/QUEUE, keyspace://HOST/QUEUE, rabbitmq://HOST/VHOST/QUEUE or memory:///QUEUE. Of a password in it, nothing is ever shown.

Exit codes:

`

type cli struct {
	Push       pushCommand       `cmd:"" help:"Push a message, or one for each line of standard input."`
	Consume    consumeCommand    `cmd:"" help:"Print each message as it becomes due, or run a command for it."`
	Stats      statsCommand      `cmd:"" help:"Count the messages of a queue, once or all the time."`
	Peek       peekCommand       `cmd:"" help:"Show the messages that wait, without taking them."`
	Cancel     cancelCommand     `cmd:"" help:"Take messages back that wait."`
	Reschedule rescheduleCommand `cmd:"" help:"Make a message that waits due at another time."`
	Dead       deadCommand       `cmd:"" help:"List dead letters, put them back into the queue, or delete them."`
	Purge      purgeCommand      `cmd:"" help:"Delete everything that there is of a queue."`
	Doctor     doctorCommand     `cmd:"" help:"Check how a store is set up, and name what to change."`
	Verify     verifyCommand     `cmd:"" help:"Run the conformance suite against your own server."`
	Demo       demoCommand       `cmd:"" help:"Watch a delay queue at work, or replay a file of messages through one."`
	Redisson   redissonCommand   `cmd:"" help:"Look into a queue that is shared with Java."`
	Completion completionCommand `cmd:"" help:"Print the script that completes commands and flags in a shell."`
	Complete   completeCommand   `cmd:"" hidden:"" name:"__complete"`
}

// streams are where a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// run is the whole program but for the process around it; it returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	err := execute(ctx, args, streams{stdin, stdout, stderr})
	code := exitCode(err)
	if err != nil && code != exitPipe { // others end there without a word, too
		_, _ = fmt.Fprintln(stderr, "delayq: "+withoutSecrets(plain(err), args))
	}
	return code
}

// plain is an error's text without the name that the library and the program share.
func plain(err error) string {
	text := strings.TrimPrefix(err.Error(), "delayq: ")
	return strings.NewReplacer("\ndelayq: ", "\n", ": delayq: ", ": ").Replace(text)
}

func newParser(ctx context.Context, std streams, opts ...kong.Option) (*kong.Kong, error) {
	return kong.New(&cli{}, append(opts,
		kong.Name("delayq"),
		kong.Description(description+exitTable()),
		kong.Writers(std.out, std.err),
		rawStrings,
		kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 100}),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(std),
	)...)
}

func execute(ctx context.Context, args []string, std streams) error {
	helped := false
	parser, err := newParser(ctx, std, kong.Exit(func(int) { helped = true }))
	if err != nil {
		return fmt.Errorf("reading the command line: %w", err)
	}
	command, err := parser.Parse(args)
	switch {
	case helped: // the parser's errors after --help do not matter
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
