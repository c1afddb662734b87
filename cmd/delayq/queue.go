package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/delayq/delayq"
)

// namedQueue is the queue that a URL names.
type namedQueue struct {
	URL     string `arg:"" name:"url" placeholder:"URL" help:"The queue: SCHEME://[USER:PASSWORD@]HOST[:PORT]/QUEUE[?NAME=VALUE&…]; also redis:// and amqp:// with queue=QUEUE"`
	Verbose bool   `help:"Show the library's own log on standard error."`
}

// logger logs messages at the level or above, or all messages.
func (n *namedQueue) logger(std streams, level slog.Level) *slog.Logger {
	if n.Verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(std.err, &slog.HandlerOptions{Level: level}))
}

// use calls f with the queue.
func (n *namedQueue) use(ctx context.Context, std streams, f func(delayq.Queue) error) error {
	return n.useWith(ctx, f, delayq.WithLogger(n.logger(std, slog.LevelError)))
}

func (n *namedQueue) useWith(ctx context.Context, f func(delayq.Queue) error, opts ...delayq.Option) (err error) {
	opts = append(opts, delayq.DeadLetterRetention(0, 0)) // that of the application counts
	q, err := delayq.Open(ctx, n.URL, opts...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	return f(q)
}
