package chaos

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/judge"
)

// Env is what all clients of a process share.
type Env struct {
	Backend string
	Queue   string
	Seed    uint64
	Traits  backend.Traits
	Rec     judge.Recorder
	Mix     Mix
	Numbers *Numbers

	// Second says that this is the second queue, whose messages have ids of the first one's.
	Second bool

	// Shift is how far the store's clock differs from the machine's when nothing makes it jump. Due
	// times are by the store's.
	Shift time.Duration

	Draining atomic.Bool  // workers acknowledge everything at once, but for killsAtEnd
	Hurry    atomic.Bool  // contexts of calls end at random
	Broken   atomic.Int64 // counts those
	Stopping atomic.Bool

	Reopening atomic.Bool // clients close their handles and open new ones
	Reopened  atomic.Int64

	Pausing atomic.Bool  // workers stop to receive for a while, or close their handles for as long
	Paused  atomic.Int64 // counts that
}

// Numbers gives messages their numbers.
type Numbers struct{ next, last atomic.Uint32 }

// NewNumbers begins after a number, and ends with last unless that is 0.
func NewNumbers(after, last uint32) *Numbers {
	n := new(Numbers)
	n.next.Store(after)
	n.last.Store(last)
	return n
}

// Reserve takes out numbers for another process, and returns the one before the first.
func (n *Numbers) Reserve(count uint32) uint32 { return n.next.Add(count) - count }

// Used is the last number given.
func (n *Numbers) Used() uint32 { return n.next.Load() }

func (n *Numbers) take(count int) (first uint32, ok bool) {
	first = n.Reserve(uint32(count)) + 1
	last := n.last.Load()
	return first, last == 0 || first+uint32(count)-1 <= last
}

// Mix says how often clients do something else than push, receive and acknowledge: as a share of all
// messages unless it says otherwise.
type Mix struct {
	Nack, Untouched, Extend, Dead, Abandon, Late float64
	Cancel, Reschedule, PushAgain                float64
	Break                                        float64 // of all calls
	Reopen                                       float64 // of all calls while handles are to be reopened
	Pause                                        float64 // of all rounds of workers while they are to pause
	Delay                                        time.Duration
	Leases                                       []time.Duration
	Batches                                      []int // messages in a call
}

// DefaultMix has all of it.
func DefaultMix() Mix {
	return Mix{
		Nack: 0.012, Untouched: 0.004, Extend: 0.01, Dead: 0.004, Abandon: 0.002, Late: 0.002,
		Cancel: 0.01, Reschedule: 0.01, PushAgain: 0.003,
		Break: 0.02, Reopen: 0.1, Pause: 0.2,
		Delay:   1200 * time.Millisecond,
		Leases:  []time.Duration{700 * time.Millisecond, 1500 * time.Millisecond, 3 * time.Second},
		Batches: []int{1, 10, 100, 100, 100},
	}
}

// OpenFunc opens a backend with connections of its own.
type OpenFunc func(ctx context.Context) (backend.Backend, error)

// client has a handle on the queue and records what it does with it. It is for one goroutine.
type client struct {
	*Env
	proc   int
	handle int
	dice   *rand.Rand
	b      backend.Backend
	q      backend.Queue
}

func newClient(e *Env, proc int, b backend.Backend) *client {
	return &client{Env: e, proc: proc, dice: diceOf(e.Seed, fmt.Sprint(e.Backend, proc)), b: b}
}

const (
	callTime = 3 * time.Second
	openTime = 20 * time.Second // on RabbitMQ the first to open declares some hundred queues and exchanges, each a round trip to three nodes
	breath   = 5 * time.Millisecond
)

func quiet() backend.Options { return backend.Options{Logger: slog.New(slog.DiscardHandler)} }

// open opens a handle, and retries until it succeeds or ctx ends.
func (c *client) open(ctx context.Context) {
	for ctx.Err() == nil && c.q == nil {
		within, cancel := context.WithTimeout(ctx, openTime)
		q, err := c.b.Open(within, c.Queue, quiet())
		cancel()
		if err != nil {
			c.rest(ctx, 20*breath)
			continue
		}
		c.handle++
		c.q = q
	}
}

func (c *client) close() {
	if c.q == nil {
		return
	}
	c.call(context.Background(), callTime, judge.Call{Op: judge.Close}, func(context.Context, *judge.Call) error { return c.q.Close() })
	c.q = nil
}

// reopen closes the handle once in a while, and opens one where there is none.
func (c *client) reopen(ctx context.Context) {
	if c.Reopening.Load() && c.chance(c.Mix.Reopen) {
		c.Reopened.Add(1)
		c.close()
	}
	c.open(ctx)
}

func (c *client) rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func (c *client) chance(p float64) bool { return p > 0 && c.dice.Float64() < p }

func pick[T any](dice *rand.Rand, from []T) T { return from[dice.IntN(len(from))] }

// hurried is a call's context. Sometimes it ends at random, before, in or after the call.
func (c *client) hurried(ctx context.Context, within time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, within)
	p := c.Mix.Break
	if c.Hurry.Load() {
		p = 0.5
	}
	if c.Draining.Load() || !c.chance(p) {
		return ctx, cancel
	}
	c.Broken.Add(1)
	moment := time.AfterFunc(time.Duration(c.dice.IntN(2500))*time.Microsecond, cancel)
	return ctx, func() { moment.Stop(); cancel() }
}

// call records a call. do sets the outcomes of the items; its error is that of the whole call.
func (c *client) call(ctx context.Context, within time.Duration, call judge.Call, do func(context.Context, *judge.Call) error) judge.Call {
	call.Proc, call.Handle, call.Second = c.proc, c.handle, c.Second
	ctx, cancel := c.hurried(ctx, within)
	defer cancel()
	call.Start = now()
	c.Rec.Begin(&call)
	if err := do(ctx, &call); err != nil {
		call.Err = err.Error()
	}
	call.End = now()
	c.Rec.End(&call)
	return call
}

// batch records a call that returns an error for each of its items. It makes none without items.
func (c *client) batch(ctx context.Context, call judge.Call, do func(context.Context) []error) judge.Call {
	if len(call.Items) == 0 {
		return call
	}
	return c.call(ctx, callTime, call, func(ctx context.Context, call *judge.Call) error { return call.SetOutcomes(do(ctx)) })
}

func now() int64 { return time.Now().UnixNano() }

// A Group runs clients until they return.
type Group struct{ run sync.WaitGroup }

// Add starts a client with a backend of its own, and closes that when the client returns.
func (g *Group) Add(ctx context.Context, open OpenFunc, run func(context.Context, backend.Backend)) error {
	b, err := open(ctx)
	if err != nil {
		return fmt.Errorf("opening a backend for a client: %w", err)
	}
	g.run.Go(func() {
		run(ctx, b)
		_ = b.Close() // its queues are closed
	})
	return nil
}

// Wait returns when all clients have returned.
func (g *Group) Wait() { g.run.Wait() }
