package store_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/store"
)

var errDied = errors.New("the worker died here")

// A fate is what happens to one command of a worker.
type fate struct {
	at     func(redis.Cmder) bool // which command
	before func()                 // runs before it; nil for nothing
	dies   bool                   // whether nothing comes after it
	after  func()                 // runs after it, and then its reply is lost; nil for no loss
	unsent bool                   // whether it is lost on its way to the server

	met, dead atomic.Bool
}

func (f *fate) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (f *fate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return f.meet(cmd, func() error { return next(ctx, cmd) })
	}
}

func (f *fate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return f.meet(cmds[0], func() error { return next(ctx, cmds) })
	}
}

func (f *fate) meet(cmd redis.Cmder, do func() error) error {
	if f.dead.Load() {
		cmd.SetErr(errDied)
		return errDied
	}
	first := f.at(cmd) && f.met.CompareAndSwap(false, true)
	if first && f.before != nil {
		f.before()
	}
	if first && f.unsent {
		return io.EOF
	}
	err := do()
	switch {
	case !first:
	case err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT"):
		f.met.Store(false) // it comes again
	case f.after != nil:
		f.after()
		return io.EOF
	default:
		f.dead.Store(f.dies)
	}
	return err
}

// doomed is a store of another worker on the same queue, which meets a fate.
func (b *bench) doomed(f *fate) *store.Store {
	b.t.Helper()
	client := redis.NewClient(b.raw.Options())
	b.t.Cleanup(func() { _ = client.Close() })
	client.AddHook(f)
	return b.with(client)
}

func called(name string) func(redis.Cmder) bool {
	return func(cmd redis.Cmder) bool { return cmd.Name() == name }
}

// pushedAndMoved has a message that a worker has moved to the list and not taken.
func pushedAndMoved(t *testing.T) *bench {
	t.Helper()
	b := setup(t)
	b.push("a")
	f := &fate{at: called("evalsha"), dies: true}
	if _, err := b.doomed(f).MoveAndTake(b.ctx, 10, time.Minute, "dead"); !errors.Is(err, errDied) {
		t.Fatalf("the doomed worker got %v", err)
	}
	if n := b.raw.LLen(b.ctx, b.key("ready")).Val(); n != 1 {
		t.Fatalf("%d messages are ready, want 1", n)
	}
	return b
}

func TestMovedAndNotTaken(t *testing.T) {
	t.Parallel()
	b := pushedAndMoved(t)
	stats, err := b.Stats(b.ctx)
	if err != nil || stats.Ready != 1 || stats.Scheduled+stats.InFlight+stats.Dead != 0 || stats.HeadDue.IsZero() {
		t.Errorf("stats %+v, %v", stats, err)
	}
	b.want(b.Schedule(b.ctx, []backend.Message{{ID: "a"}}), backend.ErrDuplicate)
	d := b.next(b.MoveAndTake, time.Minute, "a")
	if d.Attempt != 1 {
		t.Errorf("attempt %d", d.Attempt)
	}
	b.all(b.Ack(b.ctx, []backend.Lease{d.Lease()}))
	b.empty()
}

func TestMovedAndCancelled(t *testing.T) {
	t.Parallel()
	b := pushedAndMoved(t)
	b.all(b.Cancel(b.ctx, []string{"a"}))
	b.nothing(b.MoveAndTake)
	b.empty()
}

func TestMovedAndRescheduled(t *testing.T) {
	t.Parallel()
	b := pushedAndMoved(t)
	b.all(b.Reschedule(b.ctx, []backend.Move{{ID: "a", Delay: 100 * time.Millisecond}}))
	b.nothing(b.MoveAndTake)
	d := b.next(b.MoveAndTake, time.Minute, "a")
	if d.Attempt != 1 {
		t.Errorf("attempt %d", d.Attempt)
	}
	b.all(b.Ack(b.ctx, []backend.Lease{d.Lease()}))
	b.empty()
}

// Workers of all modes may meet on one queue, for example while one mode takes over from another.
func TestMovedAndClaimedAnotherWay(t *testing.T) {
	for _, name := range []string{"script", "arbitrate", "mover"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := pushedAndMoved(t)
			d := b.next(ways(b.Store)[name], time.Minute, "a")
			if d.Attempt != 1 {
				t.Errorf("attempt %d", d.Attempt)
			}
			b.all(b.Ack(b.ctx, []backend.Lease{d.Lease()}))
			b.empty()
		})
	}
}
