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

// Env is shared by all clients of a process.
type Env struct {
	Backend string
	Queue   string
	Seed    uint64
	Traits  backend.Traits
	Rec     judge.Recorder
	Mix     Mix
	Numbers *Numbers

	// Second marks the second queue, whose messages have ids of the first queue's messages.
	Second bool

	// WorkerContents are those that workers give to messages that they hold; nil where they give none.
	WorkerContents *workerContents

	// Shift is the difference of the store's clock from the machine's while nothing makes it jump.
	// Due times follow the store's clock.
	Shift time.Duration

	Draining atomic.Bool // workers ack every message at once, except for deadAtDrain messages
	Stopping atomic.Bool

	// Three faults of clients, each with a counter of its effects.
	EndingContexts atomic.Bool // contexts of calls end at random
	EndedContexts  atomic.Int64
	Reopening      atomic.Bool // clients close their handles and open new ones
	Reopened       atomic.Int64
	Pausing        atomic.Bool // workers stop receiving for a while, some with a closed handle
	Paused         atomic.Int64
}

// ended reports whether a client other than a worker has nothing more to do.
func (e *Env) ended(ctx context.Context) bool {
	return ctx.Err() != nil || e.Draining.Load() || e.Stopping.Load()
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

// Reserve takes out numbers for another process, and returns the number before the first.
func (n *Numbers) Reserve(count uint32) uint32 { return n.next.Add(count) - count }

func (n *Numbers) take(count int) (first uint32, ok bool) {
	first = n.Reserve(uint32(count)) + 1
	last := n.last.Load()
	return first, last == 0 || first+uint32(count)-1 <= last
}

// Mix is the share of messages with which clients do more than push, receive and ack.
type Mix struct {
	Nack, Untouched, Extend, Dead, Abandon, Late float64
	Cancel, Reschedule, Replace, PushAgain, Get  float64
	ReplaceHeld                                  float64 // of what a worker receives
	EndContext                                   float64 // of all calls
	Reopen                                       float64 // of all calls, while Env.Reopening is set
	Pause                                        float64 // of all rounds of workers, while Env.Pausing is set
	Delay                                        time.Duration
	Leases                                       []time.Duration
	Batches                                      []int // messages in a call
}

// DefaultMix has all of it.
func DefaultMix() Mix {
	return Mix{
		Nack: 0.012, Untouched: 0.004, Extend: 0.01, Dead: 0.004, Abandon: 0.002, Late: 0.002,
		Cancel: 0.01, Reschedule: 0.01, Replace: 0.01, PushAgain: 0.003, Get: 0.01, ReplaceHeld: 0.005,
		EndContext: 0.02, Reopen: 0.1, Pause: 0.2,
		Delay:   1200 * time.Millisecond,
		Leases:  []time.Duration{700 * time.Millisecond, 1500 * time.Millisecond, 3 * time.Second},
		Batches: []int{1, 10, 100, 100, 100},
	}
}

// OpenFunc opens a backend with connections of its own.
type OpenFunc func(ctx context.Context) (backend.Backend, error)

// A Run is a client: it uses a backend until its part of the test run is over.
type Run func(context.Context, backend.Backend)

// client has a handle on the queue and records its calls. Only one goroutine may use it.
type client struct {
	*Env
	proc    int
	handle  int
	rng     *rand.Rand
	b       backend.Backend
	q       backend.Queue
	patient bool // its contexts do not end at random
}

func newClient(e *Env, proc int, b backend.Backend) *client {
	return &client{Env: e, proc: proc, rng: rngOf(e.Seed, fmt.Sprint(e.Backend, proc)), b: b}
}

const (
	callTime = 3 * time.Second
	// On RabbitMQ the first Open declares some hundred queues and exchanges, each a round trip to
	// three nodes.
	openTime   = 20 * time.Second
	shortPause = 5 * time.Millisecond
)

var (
	noLog = slog.New(slog.DiscardHandler)
	quiet = backend.Options{Logger: noLog}
)

// open opens a handle, and retries until it succeeds or ctx ends.
func (c *client) open(ctx context.Context) {
	for ctx.Err() == nil && c.q == nil {
		within, cancel := context.WithTimeout(ctx, openTime)
		q, err := c.b.Open(within, c.Queue, quiet)
		cancel()
		if err != nil {
			c.rest(ctx, 20*shortPause)
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

// reopen closes the handle once in a while, and opens one where there is none. It reports whether
// there is a handle.
func (c *client) reopen(ctx context.Context) bool {
	if c.Reopening.Load() && c.chance(c.Mix.Reopen) {
		c.Reopened.Add(1)
		c.close()
	}
	c.open(ctx)
	return c.q != nil
}

func (c *client) rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func (c *client) chance(p float64) bool { return p > 0 && c.rng.Float64() < p }

func pick[T any](rng *rand.Rand, from []T) T { return from[rng.IntN(len(from))] }

// contextOf returns a call's context. Some contexts end at random, before, in or after the call.
func (c *client) contextOf(ctx context.Context, within time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, within)
	p := c.Mix.EndContext
	if c.EndingContexts.Load() {
		p = 0.5
	}
	if c.patient || c.Draining.Load() || !c.chance(p) {
		return ctx, cancel
	}
	c.EndedContexts.Add(1)
	end := time.AfterFunc(time.Duration(c.rng.IntN(2500))*time.Microsecond, cancel)
	return ctx, func() { end.Stop(); cancel() }
}

// call records a call. do sets the outcomes of the items, and returns the error of the whole call.
func (c *client) call(ctx context.Context, within time.Duration, call judge.Call, do func(context.Context, *judge.Call) error) judge.Call {
	call.Proc, call.Handle, call.Second = c.proc, c.handle, c.Second
	ctx, cancel := c.contextOf(ctx, within)
	defer cancel()
	call.Start = time.Now().UnixNano()
	c.Rec.Begin(&call)
	if err := do(ctx, &call); err != nil {
		call.Err = err.Error()
	}
	call.End = time.Now().UnixNano()
	c.Rec.End(&call)
	return call
}

// batch records a call that returns an error for each of its items. Without items it makes no call.
func (c *client) batch(ctx context.Context, call judge.Call, do func(context.Context) []error) judge.Call {
	if len(call.Items) == 0 {
		return call
	}
	return c.call(ctx, callTime, call, func(ctx context.Context, call *judge.Call) error { return call.SetOutcomes(do(ctx)) })
}

// delivered is the record of a message that a worker received.
func (c *client) delivered(d *backend.Delivery) judge.Item {
	n, content, whole := recognize(d.Body, d.Headers, c.Traits)
	if c.Traits.Supports(backend.OwnIDs) {
		whole = whole && d.ID == c.idOf(n)
	}
	return judge.Item{
		N: n, Out: judge.OK, Altered: !whole, Content: content, Attempt: d.Attempt, Token: d.Token, Due: d.Due.UnixNano(), Until: d.Until.UnixNano(),
	}
}

// setDue makes a message due at once, after a delay, or at a time.
func (c *client) setDue(m *backend.Message, it *judge.Item) {
	delay := jitter(c.rng, c.Mix.Delay)
	switch c.rng.IntN(10) {
	case 0:
	case 1:
		due := time.Now().Add(c.Shift + delay)
		m.Due, it.Due = due, due.UnixNano()
	default:
		m.Delay, it.Delay = delay, int64(delay)
	}
}

// A message is known by its number and its id.
type message struct {
	n  uint32
	id string
}

// onIDs records a call on messages by their ids.
func (c *client) onIDs(ctx context.Context, op judge.Op, ms []message, do func(context.Context, []string) []error) {
	call := judge.Call{Op: op, Items: each(ms, func(m message) judge.Item { return judge.Item{N: m.n} })}
	c.batch(ctx, call, func(ctx context.Context) []error { return do(ctx, each(ms, func(m message) string { return m.id })) })
}

// each maps a slice.
func each[T, R any](from []T, f func(T) R) []R {
	to := make([]R, len(from))
	for i, one := range from {
		to[i] = f(one)
	}
	return to
}

// Audit calls Stats on a queue, and records the result.
func Audit(ctx context.Context, e *Env, q backend.Queue) (found backend.Stats, err error) {
	c := &client{Env: e, rng: rngOf(e.Seed, "audit")}
	c.call(ctx, callTime, judge.Call{Op: judge.Stats}, func(ctx context.Context, call *judge.Call) error {
		found, err = q.Stats(ctx)
		call.Count = found.Scheduled + found.Ready + found.InFlight + found.Dead + found.Quarantined
		return err
	})
	return found, err
}

// A Group runs clients until they return.
type Group struct{ sync.WaitGroup }

// Add starts a client with a backend of its own, and closes the backend when the client returns.
func (g *Group) Add(ctx context.Context, open OpenFunc, run Run) error {
	b, err := open(ctx)
	if err != nil {
		return fmt.Errorf("opening a backend for a client: %w", err)
	}
	g.Go(func() {
		run(ctx, b)
		_ = b.Close() // its queues are closed
	})
	return nil
}
