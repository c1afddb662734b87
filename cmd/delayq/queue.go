package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

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
	log := slog.New(slog.NewTextHandler(std.err, &slog.HandlerOptions{Level: level}))
	redisLog.to.Store(log)
	return log
}

// redisLog passes lines of the client library for Redis on to the log of --verbose. That library has
// one logger for all clients. What the lines say of failures is in our errors too.
var redisLog clientLog

type clientLog struct{ to atomic.Pointer[slog.Logger] }

// Printf is called by the client library.
func (l *clientLog) Printf(ctx context.Context, format string, v ...any) {
	if to := l.to.Load(); to != nil {
		to.DebugContext(ctx, "go-redis: "+fmt.Sprintf(format, v...))
	}
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
