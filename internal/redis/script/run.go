package script

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/call"
)

// ErrUnknown is the error of a lost reply where the second try cannot tell whether the first was
// executed.
var ErrUnknown = fmt.Errorf("%w: the reply was lost", backend.ErrOutcomeUnknown)

// Runner runs scripts on one queue's keys. It is safe for concurrent use.
type Runner struct {
	Client redis.UniversalClient
	Calls  *call.Group // of the backend
	Keys   []string
	Clock  clockwork.Clock // nil for the server's own
	Args   []any           // of every script, before its own

	Confirm Confirmation // replicas or disks that every script waits for

	Log *slog.Logger // warns of a message that could not be announced; nil for no warnings
}

// Confirmed returns a Runner of the same keys that waits for the confirmation.
func (r *Runner) Confirmed(c Confirmation) *Runner {
	other := *r
	other.Confirm = c
	return &other
}

// Once is a command that the client library does not repeat. A lost reply leaves open whether the
// command was executed, and a second execution must know that it is one.
type Once struct{ *redis.Cmd }

// NewOnce returns such a command.
func NewOnce(ctx context.Context, args ...any) Once { return Once{redis.NewCmd(ctx, args...)} }

// NoRetry tells the client library not to repeat the command.
func (Once) NoRetry() bool { return true }

// clockSkew is by how much the clock of a replica may be ahead of that of its master, which it
// replaces between two tries.
const clockSkew = time.Second

// runOnce runs a script once, and returns when ctx ends. first is when the first try began, zero in
// the first try itself.
func (r *Runner) runOnce(ctx context.Context, sc *Script, first time.Time, args []any) (any, error) {
	return call.Do(ctx, r.Calls, func(ctx context.Context) (any, error) { return r.send(ctx, sc, first, args) })
}

func (r *Runner) send(ctx context.Context, sc *Script, began time.Time, args []any) (any, error) {
	first, err := r.onItsClock(ctx, began)
	if err != nil {
		return nil, err
	}
	reply, err := r.eval(ctx, "evalsha", sc.sha, first, args)
	if !redis.HasErrorPrefix(err, "NOSCRIPT") {
		return reply, err
	}
	if err := r.load(ctx, sc); err != nil {
		return nil, &notLoaded{err}
	}
	reply, err = r.eval(ctx, "evalsha", sc.sha, first, args)
	if !redis.HasErrorPrefix(err, "NOSCRIPT") {
		return reply, err
	}
	return r.eval(ctx, "eval", sc.text, first, args) // it was forgotten in between
}

// timeOnce is TIME, which the client library does not repeat: the script's tries are counted.
type timeOnce struct{ *redis.TimeCmd }

// NoRetry is as in Once.
func (timeOnce) NoRetry() bool { return true }

// onItsClock returns the earliest time that the server's clock can have shown at t, in microseconds,
// and 0 where t is zero. A repeated script may take long to reach a server that has just lost a
// reply, so that it cannot be told how long ago the first try was.
func (r *Runner) onItsClock(ctx context.Context, t time.Time) (int64, error) {
	if t.IsZero() {
		return 0, nil
	}
	var now time.Time
	if r.Clock != nil {
		now = r.Clock.Now()
	} else {
		server, err := r.server(ctx)
		if err != nil {
			return 0, err
		}
		cmd := timeOnce{redis.NewTimeCmd(ctx, "time")}
		if err := server.Process(ctx, cmd); err != nil {
			return 0, fmt.Errorf("asking for the server's time: %w", err)
		}
		now = cmd.Val()
	}
	return now.Add(-time.Since(t) - clockSkew).UnixMicro(), nil
}

// load loads a script on the server that has the keys. A Cluster's client would load it on every
// node, and wait for those that do not reply.
func (r *Runner) load(ctx context.Context, sc *Script) error {
	server, err := r.server(ctx)
	if err != nil {
		return err
	}
	return server.ScriptLoad(ctx, sc.text).Err()
}

// server returns a client of the server that has the keys.
func (r *Runner) server(ctx context.Context) (redis.UniversalClient, error) {
	switch c := r.Client.(type) {
	case interface {
		MasterForKey(ctx context.Context, key string) (*redis.Client, error)
	}: // a Cluster's
		return c.MasterForKey(ctx, r.Keys[0])
	case *redis.Ring:
		return c.GetShardClientForKey(r.Keys[0])
	default:
		return c, nil
	}
}

// notLoaded is the error of a script that the server does not have, and so has not executed.
type notLoaded struct{ err error }

func (e *notLoaded) Error() string { return "loading: " + e.err.Error() }
func (e *notLoaded) Unwrap() error { return e.err }

func (r *Runner) eval(ctx context.Context, command, sc string, first int64, args []any) (any, error) {
	all := make([]any, 0, 3+len(r.Keys)+2+len(r.Args)+len(args))
	all = append(all, command, sc, len(r.Keys))
	for _, k := range r.Keys {
		all = append(all, k)
	}
	all = append(all, r.now(), first)
	cmd := NewOnce(ctx, append(append(all, r.Args...), args...)...)
	cmd.SetFirstKeyPos(3)
	if r.Confirm.wanted() {
		return r.confirmed(ctx, cmd)
	}
	_ = r.Client.Process(ctx, cmd)
	return cmd.Result()
}

// now returns the injected clock's time in microseconds, or nothing for the server's own.
func (r *Runner) now() any {
	if r.Clock == nil {
		return ""
	}
	return r.Clock.Now().UnixMicro()
}

// Read runs a script that changes nothing. It tries up to three times, and waits for no server.
func (r *Runner) Read(ctx context.Context, sc *Script, args ...any) (any, error) {
	for a := (attempts{made: 1}); ; a.made++ {
		reply, err := r.runOnce(ctx, sc, time.Time{}, args)
		if err == nil {
			return reply, nil
		}
		if problemOf(ctx, err) == none || a.made == tries || !pause(ctx, a.interval()) {
			return nil, fmt.Errorf("script %s: %w", sc.name, sc.naming(OfRead(ctx, err)))
		}
	}
}

// Translate adds the matching sentinel to an error of the server or the client library.
func Translate(err error) error {
	if strings.HasPrefix(err.Error(), "OOM ") || strings.Contains(err.Error(), "command not allowed when used memory") {
		return fmt.Errorf("%w: %w", backend.ErrFull, err)
	}
	if errors.Is(err, redis.ErrClosed) {
		return fmt.Errorf("%w: %w", backend.ErrClosed, err)
	}
	if redis.HasErrorPrefix(err, "WRONGTYPE") || strings.Contains(err.Error(), "WRONGTYPE Operation against a key") { // so before Redis 7
		return fmt.Errorf("%w: %w", errWrongType, err)
	}
	return err
}

// errWrongType is the error of a queue's key where another program has stored something else.
var errWrongType error = &backend.InvalidError{
	What: "type of one of the queue's keys,", Value: "which another program has written to", Allowed: "a queue name whose keys no other program uses",
}
