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
)

// Stage is what all actors of a process share.
type Stage struct {
	Backend string
	Queue   string
	Seed    uint64
	Traits  backend.Traits
	Rec     Recorder
	Mix     Mix
	Numbers *Numbers

	// Aside says that this is the queue beside the one that all others are on. Its messages have ids that
	// the other's have too.
	Aside bool

	// Shift is how far the store's clock is off the machine's when it is left alone. Due times are by that.
	Shift time.Duration

	Draining atomic.Bool  // takers settle all they get at once
	Hurry    atomic.Bool  // calls are broken off at random
	Broken   atomic.Int64 // counts those
	Stopping atomic.Bool

	Reopening atomic.Bool // handles are closed and opened again
	Reopened  atomic.Int64

	Pausing atomic.Bool  // takers stop to take for a while, or close their handles for as long
	Paused  atomic.Int64 // counts that
}

// Numbers gives messages their numbers.
type Numbers struct{ next, last atomic.Uint32 }

// NewNumbers begins behind a number, and ends with last, where that is not 0.
func NewNumbers(behind, last uint32) *Numbers {
	n := new(Numbers)
	n.next.Store(behind)
	n.last.Store(last)
	return n
}

// Reserve takes out numbers for somebody else, and returns the one before the first.
func (n *Numbers) Reserve(count uint32) uint32 { return n.next.Add(count) - count }

// Used is the last number given.
func (n *Numbers) Used() uint32 { return n.next.Load() }

func (n *Numbers) take(count int) (first uint32, ok bool) {
	first = n.next.Add(uint32(count)) - uint32(count) + 1
	last := n.last.Load()
	return first, last == 0 || first+uint32(count)-1 <= last
}

// Mix says how often, of all messages, actors do what is not push, take and ack.
type Mix struct {
	Nack, Untouched, Extend, Bury, Abandon, Late float64
	Cancel, Move, Again                          float64
	Break                                        float64 // of all calls
	Reopen                                       float64 // of all calls while handles are to be reopened
	Pause                                        float64 // of all rounds of takers while they are to pause
	Delay                                        time.Duration
	Leases                                       []time.Duration
	Batches                                      []int // how many at once
}

// DefaultMix has all of it.
func DefaultMix() Mix {
	return Mix{
		Nack: 0.012, Untouched: 0.004, Extend: 0.01, Bury: 0.004, Abandon: 0.002, Late: 0.002,
		Cancel: 0.01, Move: 0.01, Again: 0.003,
		Break: 0.02, Reopen: 0.1, Pause: 0.2,
		Delay:   1200 * time.Millisecond,
		Leases:  []time.Duration{700 * time.Millisecond, 1500 * time.Millisecond, 3 * time.Second},
		Batches: []int{1, 10, 100, 100, 100},
	}
}

// OpenFunc opens a backend with connections of its own.
type OpenFunc func(ctx context.Context) (backend.Backend, error)

// actor is somebody with a handle on the queue. It is for one goroutine.
type actor struct {
	*Stage
	proc   int
	handle int
	dice   *rand.Rand
	b      backend.Backend
	q      backend.Queue
}

func newActor(s *Stage, proc int, b backend.Backend) *actor {
	return &actor{Stage: s, proc: proc, dice: diceOf(s.Seed, fmt.Sprint(s.Backend, proc)), b: b}
}

const (
	callTime = 3 * time.Second
	openTime = 20 * time.Second // on RabbitMQ the first to open declares some hundred queues and exchanges, each a round trip to three nodes
	breath   = 5 * time.Millisecond
)

func quiet() backend.Options { return backend.Options{Logger: slog.New(slog.DiscardHandler)} }

// open opens a handle, as often as it takes.
func (a *actor) open(ctx context.Context) {
	for ctx.Err() == nil && a.q == nil {
		within, cancel := context.WithTimeout(ctx, openTime)
		q, err := a.b.Open(within, a.Queue, quiet())
		cancel()
		if err != nil {
			a.rest(ctx, 20*breath)
			continue
		}
		a.handle++
		a.q = q
	}
}

func (a *actor) close() {
	if a.q == nil {
		return
	}
	a.call(context.Background(), callTime, Call{Op: Close}, func(context.Context, *Call) error { return a.q.Close() })
	a.q = nil
}

// reopen closes the handle and opens another, once in a while.
func (a *actor) reopen(ctx context.Context) {
	if a.Reopening.Load() && a.chance(a.Mix.Reopen) {
		a.Reopened.Add(1)
		a.close()
	}
	a.open(ctx)
}

func (a *actor) rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func (a *actor) chance(p float64) bool { return p > 0 && a.dice.Float64() < p }

func pick[T any](dice *rand.Rand, from []T) T { return from[dice.IntN(len(from))] }

// hurried is a call's context: it ends in time, and sometimes at random, before, in or after the call.
func (a *actor) hurried(ctx context.Context, within time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, within)
	p := a.Mix.Break
	if a.Hurry.Load() {
		p = 0.5
	}
	if a.Draining.Load() || !a.chance(p) {
		return ctx, cancel
	}
	a.Broken.Add(1)
	moment := time.AfterFunc(time.Duration(a.dice.IntN(2500))*time.Microsecond, cancel)
	return ctx, func() { moment.Stop(); cancel() }
}

// call records a call. do sets what came of the items; an error is that of the whole call.
func (a *actor) call(ctx context.Context, within time.Duration, c Call, do func(context.Context, *Call) error) Call {
	c.Proc, c.Handle, c.Aside = a.proc, a.handle, a.Aside
	ctx, cancel := a.hurried(ctx, within)
	defer cancel()
	c.Start = now()
	a.Rec.Begin(&c)
	if err := do(ctx, &c); err != nil {
		c.Err = err.Error()
	}
	c.End = now()
	a.Rec.End(&c)
	return c
}

// sort notes outcomes, and returns the first failure that tells nothing.
func sortOut(c *Call, errs []error) (unclear error) {
	for i := range c.Items {
		var err error
		if errs != nil {
			err = errs[i]
		}
		c.Items[i].Out = outcomeOf(err)
		if c.Items[i].Out == Unknown && unclear == nil {
			unclear = err
		}
	}
	return unclear
}

// A Troupe runs actors until it is told to stop.
type Troupe struct {
	Stage *Stage
	run   sync.WaitGroup
}

// Add starts an actor with a backend that do opens, and closes it at the end.
func (t *Troupe) Add(ctx context.Context, open OpenFunc, play func(context.Context, backend.Backend)) error {
	b, err := open(ctx)
	if err != nil {
		return fmt.Errorf("opening a backend for an actor: %w", err)
	}
	t.run.Go(func() {
		play(ctx, b)
		_ = b.Close() // its queues are closed
	})
	return nil
}

// Wait returns when all actors have left.
func (t *Troupe) Wait() { t.run.Wait() }
