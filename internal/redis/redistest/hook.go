package redistest

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
)

// A hook runs one function for each command, and for the first of each pipeline.
type hook func(cmd redis.Cmder, send func() error) error

// OnCommand returns a hook of a client that runs f for each command, and for the first command of
// each pipeline. f calls send to have the command or pipeline sent.
func OnCommand(f func(cmd redis.Cmder, send func() error) error) redis.Hook { return hook(f) }

func (h hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return h(cmd, func() error { return next(ctx, cmd) })
	}
}

func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return h(cmds[0], func() error { return next(ctx, cmds) })
	}
}

// ErrDied is the error of all calls of a client whose process died in a [Fault].
var ErrDied = errors.New("the worker died here")

// A Fault is what happens to one command of a client.
type Fault struct {
	At     string // the name of the command
	Before func() // runs before it; nil for nothing
	Dies   bool   // whether nothing comes after it
	After  func() // runs after it, and then its reply is lost; nil for no loss
	Unsent bool   // whether it is lost on its way to the server

	met, dead atomic.Bool
}

// LostReply loses the reply to the next script, and runs meanwhile before the script is sent again.
func LostReply(meanwhile func()) *Fault { return &Fault{At: "evalsha", After: meanwhile} }

// Met reports whether the fault has happened.
func (f *Fault) Met() bool { return f.met.Load() }

// Hook returns the fault as a hook of a client.
func (f *Fault) Hook() redis.Hook { return OnCommand(f.meet) }

// Client returns a client of the same server that meets the fault.
func (f *Fault) Client(t testing.TB, same *redis.Client) *redis.Client {
	t.Helper()
	client := Another(t, same)
	client.AddHook(f.Hook())
	return client
}

// Another returns another client of the same server, for hooks of its own.
func Another(t testing.TB, same *redis.Client) *redis.Client {
	t.Helper()
	opts := *same.Options()
	opts.PushNotificationProcessor, opts.MaintNotificationsConfig = nil, nil // each client has its own, and writes to it
	client := redis.NewClient(&opts)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func (f *Fault) meet(cmd redis.Cmder, send func() error) error {
	if f.dead.Load() {
		cmd.SetErr(ErrDied)
		return ErrDied
	}
	first := cmd.Name() == f.At && f.met.CompareAndSwap(false, true)
	if first && f.Before != nil {
		f.Before()
	}
	if first && f.Unsent {
		return io.EOF
	}
	err := send()
	switch {
	case !first:
	case err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT"):
		f.met.Store(false) // it comes again
	case f.After != nil:
		f.After()
		return io.EOF
	default:
		f.dead.Store(f.Dies)
	}
	return err
}
