package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/alecthomas/kong"
)

const description = `A delay queue keeps a message hidden until it is due, then hands it to one worker, until a worker says that it is done.

URL names a backend and a queue, as in redisson://HOST:6379/QUEUE, zsetpoll://HOST/QUEUE, keyspace://HOST/QUEUE, rabbitmq://HOST/VHOST/QUEUE, pg://HOST/DATABASE/QUEUE, sqlite:///DIRECTORY/FILE/QUEUE, delayq+http://TOKEN@HOST/QUEUE or memory:///QUEUE. Of a password in it, nothing is ever shown.

Exit codes:

`

type cli struct {
	Push       pushCommand       `cmd:"" help:"Push a message, or one for each line of standard input."`
	Consume    consumeCommand    `cmd:"" help:"Print each message as it becomes due, or run a command for it."`
	Stats      statsCommand      `cmd:"" help:"Count the messages of a queue, once or all the time."`
	Get        getCommand        `cmd:"" help:"Show messages by id, in whatever state they are."`
	Queues     queuesCommand     `cmd:"" help:"List the queues of a store."`
	Peek       peekCommand       `cmd:"" help:"Show the messages that wait, without taking them."`
	Cancel     cancelCommand     `cmd:"" help:"Cancel messages that wait."`
	Reschedule rescheduleCommand `cmd:"" help:"Make a message that waits due at another time."`
	Dead       deadCommand       `cmd:"" help:"List dead letters, put them back into the queue, or delete them."`
	Pause      pauseCommand      `cmd:"" help:"Hold the messages of a queue back from all workers."`
	Resume     resumeCommand     `cmd:"" help:"End a pause."`
	Purge      purgeCommand      `cmd:"" help:"Delete all data of a queue."`
	Reshard    reshardCommand    `cmd:"" help:"Split a queue over the masters of a Redis Cluster."`
	Serve      serveCommand      `cmd:"" help:"Serve the queues of a store over HTTP, for programs in any language."`
	Token      tokenCommand      `cmd:"" help:"Make a token for serve."`
	Dashboard  dashboardCommand  `cmd:"" help:"Show the queues of stores in a browser."`
	Doctor     doctorCommand     `cmd:"" help:"Check how a store is set up, and name what to change."`
	Verify     verifyCommand     `cmd:"" help:"Run the conformance suite against your own server."`
	Demo       demoCommand       `cmd:"" help:"Watch a delay queue at work, or replay a file of messages through one."`
	Redisson   redissonCommand   `cmd:"" help:"Look into a queue that is shared with Java."`
	Completion completionCommand `cmd:"" help:"Print the script that completes commands and flags in a shell."`
	Version    versionCommand    `cmd:"" help:"Print the version; so does --version."`
	Help       helpCommand       `cmd:"" help:"Explain a command; so does --help behind it."`
	Complete   completeCommand   `cmd:"" hidden:"" name:"__complete"`
	Doomed     doomedCommand     `cmd:"" hidden:"" name:"__demo-doomed"`

	ShowVersion kong.VersionFlag `name:"version" hidden:""`
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

// plain is an error's text without the name that the library and the program share, and with what to
// write here in place of what helps programmers.
func plain(err error) string { return forUsers.Replace(strings.TrimPrefix(err.Error(), "delayq: ")) }

var forUsers = strings.NewReplacer("\ndelayq: ", "\n", ": delayq: ", ": ",
	"(forgotten import? known: ", "(expected SCHEME://HOST/QUEUE; schemes: ",
	"expected a valid 64 bit int but got", "expected a whole number but got", "expected a float but got", "expected a number but got", " (string) (see", " (see",
	`the option Named("orders"), or queue=orders`, "queue=orders",
	`expected "<url>"`, "expected a queue's URL, as zsetpoll://HOST:6379/QUEUE",
)

func newParser(ctx context.Context, std streams, opts ...kong.Option) (*kong.Kong, error) {
	return kong.New(&cli{}, append(append(opts, argumentReaders...),
		kong.Name("delayq"),
		kong.Description(description+exitTable()),
		kong.Writers(outputWriter{std.out}, std.err),
		kong.Vars{"version": version()},
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
	case isUnwritten(err):
		return err //nolint:wrapcheck // it says all
	case err != nil:
		return fmt.Errorf("%w (see %s --help)", err, helpful(err))
	}
	return command.Run()
}

type helpCommand struct {
	Command []string `arg:"" optional:"" name:"command" placeholder:"COMMAND" help:"The command."`
}

// Run is what --help does.
func (c *helpCommand) Run(ctx context.Context, std streams) error {
	parser, err := newParser(ctx, std)
	if err != nil {
		return fmt.Errorf("reading the command line: %w", err)
	}
	if known := walk(parser.Model.Node, c.Command); known.arguments > 0 {
		return fmt.Errorf("help: no command is called %q (see delayq --help)", strings.Join(c.Command, " "))
	}
	return execute(ctx, append(c.Command, "--help"), std)
}

type versionCommand struct{}

// Run prints the version.
func (versionCommand) Run(std streams) error { return write(std.out, version()+"\n") }

// version is what the go command has noted in the program: the release that was installed, or the
// commit that was built.
func version() string {
	release := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok {
		release = cmp.Or(info.Main.Version, release)
	}
	return fmt.Sprintf("delayq %s %s %s/%s", release, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// helpful is the command whose help explains a parser's error.
func helpful(err error) string {
	var wrong *kong.ParseError
	if errors.As(err, &wrong) && wrong.Context.Selected() != nil {
		return wrong.Context.Selected().FullPath()
	}
	return "delayq"
}
