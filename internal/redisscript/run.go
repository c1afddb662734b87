package redisscript

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
)

// ErrUnknown is for a reply that was lost where the second try cannot tell whether there was a first.
var ErrUnknown = fmt.Errorf("%w: the reply was lost", backend.ErrOutcomeUnknown)

// Runner runs scripts on one queue's keys. It is safe for concurrent use.
type Runner struct {
	Client redis.UniversalClient
	Keys   []string
	Clock  clockwork.Clock // nil for the server's own
	Args   []any           // of every script, before its own

	Confirm Confirmation // what every script waits for

	Warn func(err string) // takes why a script could not announce what it did; nil for nobody
}

// Confirmed is a Runner of the same keys that waits for that.
func (r *Runner) Confirmed(c Confirmation) *Runner {
	other := *r
	other.Confirm = c
	return &other
}

// Once is a command that the client library must not repeat by itself: a reply that is lost leaves open
// whether the command has run, and a second run has to know that it is one.
type Once struct{ *redis.Cmd }

// NewOnce makes such a command.
func NewOnce(ctx context.Context, args ...any) Once { return Once{redis.NewCmd(ctx, args...)} }

// NoRetry is what the client library asks.
func (Once) NoRetry() bool { return true }

const (
	tries      = 3
	retryPause = 10 * time.Millisecond

	// onTheWay is how long a repeated script may be on its way to the server.
	onTheWay = time.Second
)

// An age is how long ago a script's first try may have been sent. The client library reads it when it writes the command, which may
// have waited long for a connection.
type age struct{ since time.Time }

// argument is 0 for a first try.
func (a age) argument() any {
	if a.since.IsZero() {
		return 0
	}
	return a
}

// MarshalBinary writes microseconds.
func (a age) MarshalBinary() ([]byte, error) {
	return strconv.AppendInt(nil, Delay(time.Since(a.since)+onTheWay), 10), nil
}

// Run runs a script, up to three times when replies are lost.
func (r *Runner) Run(ctx context.Context, sc *Script, args ...any) (any, error) {
	return r.repeat(ctx, sc, false, args)
}

// Again is Run for a script whose work may have been done already.
func (r *Runner) Again(ctx context.Context, sc *Script, args ...any) (any, error) {
	return r.repeat(ctx, sc, true, args)
}

// Once runs a script that must not be repeated. A lost reply is ErrUnknown.
func (r *Runner) Once(ctx context.Context, sc *Script, args ...any) (any, error) {
	reply, err := r.runOnce(ctx, sc, age{}, args)
	if Unknown(ctx, err) && !unsent(err) {
		err = fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return reply, wrap(sc, err)
}

func (r *Runner) repeat(ctx context.Context, sc *Script, again bool, args []any) (any, error) {
	began := time.Now()
	var err error
	for try := range tries {
		if try > 0 && !pause(ctx, retryPause<<try) {
			break
		}
		var first age
		if again {
			first.since = began
		}
		var reply any
		if reply, err = r.runOnce(ctx, sc, first, args); !Unknown(ctx, err) {
			return reply, wrap(sc, err)
		}
		again = again || !unsent(err)
	}
	return nil, wrap(sc, err)
}

// unsent reports whether there was no connection to send anything on.
func unsent(err error) bool {
	var op *net.OpError
	return errors.Is(err, redis.ErrPoolTimeout) || errors.As(err, &op) && op.Op == "dial"
}

func wrap(sc *Script, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("script %s: %w", sc.name, sc.naming(Translate(err)))
}

// Unknown reports whether a command may have run though there is no reply.
func Unknown(ctx context.Context, err error) bool {
	var reply redis.Error
	return err != nil && ctx.Err() == nil && !errors.As(err, &reply) && !errors.Is(err, redis.ErrClosed) && !errors.Is(err, backend.ErrUnconfirmed)
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// runOnce runs a script whose first try was of that age.
func (r *Runner) runOnce(ctx context.Context, sc *Script, first age, args []any) (any, error) {
	reply, err := r.eval(ctx, "evalsha", sc.sha, first, args)
	if !redis.HasErrorPrefix(err, "NOSCRIPT") {
		return reply, err
	}
	if err := r.Client.ScriptLoad(ctx, sc.text).Err(); err != nil {
		return nil, fmt.Errorf("loading: %w", err)
	}
	reply, err = r.eval(ctx, "evalsha", sc.sha, first, args)
	if !redis.HasErrorPrefix(err, "NOSCRIPT") {
		return reply, err
	}
	return r.eval(ctx, "eval", sc.text, first, args) // it was forgotten in between
}

func (r *Runner) eval(ctx context.Context, command, sc string, first age, args []any) (any, error) {
	all := make([]any, 0, 3+len(r.Keys)+2+len(r.Args)+len(args))
	all = append(all, command, sc, len(r.Keys))
	for _, k := range r.Keys {
		all = append(all, k)
	}
	all = append(all, r.now(), first.argument())
	cmd := NewOnce(ctx, append(append(all, r.Args...), args...)...)
	cmd.SetFirstKeyPos(3)
	if r.Confirm.wanted() {
		return r.confirmed(ctx, cmd)
	}
	_ = r.Client.Process(ctx, cmd)
	return cmd.Result()
}

// now is the injected clock's time in microseconds, or nothing for the server's own.
func (r *Runner) now() any {
	if r.Clock == nil {
		return ""
	}
	return r.Clock.Now().UnixMicro()
}

// Translate gives the errors of the server that a caller may want to tell apart their sentinels.
func Translate(err error) error {
	if strings.HasPrefix(err.Error(), "OOM ") || strings.Contains(err.Error(), "command not allowed when used memory") {
		return fmt.Errorf("%w: %w", backend.ErrFull, err)
	}
	if errors.Is(err, redis.ErrClosed) {
		return fmt.Errorf("%w: %w", backend.ErrClosed, err)
	}
	return err
}
