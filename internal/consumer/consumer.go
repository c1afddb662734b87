// Package consumer runs the handlers of a queue. A loop receives messages, some ahead of the
// workers. Each worker calls its handler, decides by the handler's error about the message, and
// settles it. One goroutine renews the leases of all messages being handled.
package consumer

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jonboulle/clockwork"
	"golang.org/x/time/rate"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/lease"
	"github.com/delayq/delayq/internal/telemetry"
)

var (
	// ErrDrain is the cause of the end of a handler's context that outlives the drain. Run returns
	// it when handlers do not return even then.
	ErrDrain = errors.New("handlers outlived the drain")

	// ErrTimeout is the cause of the end of a handler's context after Options.Timeout.
	ErrTimeout = errors.New("handler took too long")
)

// A Delivery is a message that a consumer received. Its methods are safe for concurrent use.
type Delivery interface {
	ID() string
	Attempt() int // 1 the first time
	Size() int    // of body and headers, in bytes
	Lease() *lease.Lease

	// Limits returns the message's own Attempts and HandlerTimeout, 0 where the Options decide.
	Limits() backend.Limits

	// Expired returns why no handler may get the message, which then becomes a dead letter; else
	// nil.
	Expired() error

	// The methods that settle the message return [lease.ErrSettled] when it is settled already.
	Ack(ctx context.Context) error
	Nack(ctx context.Context, delay time.Duration) error
	Release(ctx context.Context) error
	Dead(ctx context.Context, reason string) error

	// Observed returns what metrics and traces record of the message, at a time of the Clock.
	Observed(now time.Time) telemetry.Delivery
}

// A Policy returns how long to wait after an attempt, 1 for the first, failed with err.
type Policy func(attempt int, err error) time.Duration

// Options are the user's settings, all in the bounds of package delayq.
type Options struct {
	Workers     int
	Prefetch    int           // messages that may be claimed ahead of the workers
	MaxAttempts int           // 0 for no limit
	Drain       time.Duration // how long a stop waits before it ends the handlers' contexts
	Timeout     time.Duration // 0 for none
	Rate        *rate.Limiter // nil for none
}

// Config is Run's configuration. Every field is required, except those of Options that may be 0.
type Config struct {
	Options

	// Receive waits until a message is due and returns up to limit of them, at least one. It
	// returns backend.ErrClosed once the queue is closed.
	Receive func(ctx context.Context, limit int) ([]Delivery, error)

	// Extend makes leases end that long from now, and returns an outcome for each.
	Extend func(ctx context.Context, ls []*lease.Lease, length time.Duration) []error

	// Store gives messages back that no handler has seen, and renews leases.
	Store backend.Queue

	Gate  *Gate
	Clock clockwork.Clock
	Log   *slog.Logger
	Lease time.Duration

	// InProcess says that an ack takes no round trip, so that a worker has nothing to wait for.
	InProcess bool

	// Calls says what an ack costs a store outside of this process.
	Calls backend.CallCost

	// MaxDelay is the longest delay that the store takes.
	MaxDelay time.Duration

	// Handle calls the user's handler. It must not panic; it may end its goroutine.
	Handle func(ctx context.Context, d Delivery) error

	// Classify reads an error that Handle returned. It must not panic; it may end its goroutine.
	Classify func(err error) Failure

	// Retry spaces the attempts of a message. It may panic or end its goroutine; Fallback, which
	// does neither, is called when it panics. Refetch spaces the tries to receive from a store that
	// fails.
	Retry, Fallback, Refetch Policy

	// OnDead is called when a message has become a dead letter; nil for none. It must not panic; it
	// may end its goroutine.
	OnDead func(ctx context.Context, d Delivery, reason string, cause error)

	// Telemetry is nil for none.
	Telemetry *telemetry.Recorder
}

// A run is a message that a worker handles.
type run struct {
	d           Delivery
	maxAttempts int           // 0 for no limit
	timeout     time.Duration // 0 for none
	cancel      context.CancelCauseFunc
	timer       clockwork.Timer // nil without a timeout
	leaseEnd    clockwork.Timer // nil as long as no renewal has begun
	abandoned   bool            // its lease is no longer renewed
	shortening  bool            // a goroutine makes that lease shorter
	lost        bool            // its lease is lost
	undone      bool            // a renewal may have undone the handler's Extend
	restoring   bool            // a goroutine repeats that Extend
}

// A job is a run with its handler's context.
type job struct {
	ctx context.Context //nolint:containedctx // a channel takes it to the goroutine
	run *run
}

// A consumer is one running Consume: a loop that fetches, a goroutine for each message being
// handled, and one that renews their leases.
type consumer struct {
	Config
	fetching context.Context //nolint:containedctx // ends with the loop
	handling context.Context //nolint:containedctx // ends with the last handler
	giving   context.Context //nolint:containedctx // bounds what gives messages back

	jobs    chan job      // to goroutines that wait
	waiting atomic.Int64  // how many of them there are
	ended   chan struct{} // closed when no job comes any more

	settles atomic.Int64 // settles under way, of workers and of those that have gone on

	changed   chan struct{}  // a hint that a worker is idle or that there is room
	returning sync.WaitGroup // calls that give messages back
	restores  sync.WaitGroup // calls that repeat an Extend after a renewal

	mu          sync.Mutex
	idle        int // workers without a message; 0 while a message waits
	pendingAcks int // acks and nacks under way while their workers have gone on
	running     map[*run]struct{}
	renewing    bool // a renewal is under way
	ahead       prefetch
	watch       clockwork.Timer // on waiting runs, nil for none
}

// Run receives messages and has them handled until ctx ends or the queue is closed. Then it gives
// back messages that no handler has seen, waits for the handlers and returns nil, or ErrDrain when
// handlers do not return in time. The contexts of handlers carry the values of ctx.
func Run(ctx context.Context, cfg Config) error {
	c := newConsumer(ctx, cfg)
	defer close(c.ended)
	var abort context.CancelCauseFunc
	c.handling, abort = context.WithCancelCause(context.WithoutCancel(ctx))
	defer abort(nil)
	defer c.Telemetry.AddWorkers(c.Workers)()
	defer c.keepRenewing(context.WithoutCancel(ctx))()
	loop, stop := context.WithCancel(ctx)
	defer c.boundGiving(loop)()
	c.fetch(ctx)
	stop()
	defer c.returning.Wait()
	return c.drained(abort)
}

// boundGiving ends the calls that give messages back once a stop has taken as long as handlers may.
// The stop begins with the end of ctx.
func (c *consumer) boundGiving(ctx context.Context) (end func()) {
	giving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.giving = giving
	context.AfterFunc(ctx, func() { c.pause(giving, c.Drain+obeyWithin); cancel() })
	return cancel
}

func newConsumer(ctx context.Context, cfg Config) *consumer {
	return &consumer{
		Config:   cfg,
		fetching: ctx,
		jobs:     make(chan job),
		ended:    make(chan struct{}),
		changed:  make(chan struct{}, 1),
		idle:     cfg.Workers,
		running:  make(map[*run]struct{}),
		ahead:    newPrefetch(cfg.Prefetch, cfg.Workers, cfg.Lease, cfg.Clock.Now()),
	}
}

// obeyWithin is how long handlers may take to return once their contexts have ended.
const obeyWithin = 5 * time.Second

// drained waits until all workers are idle, as long as Drain and obeyWithin allow.
func (c *consumer) drained(abort context.CancelCauseFunc) error {
	if handlers, settles := c.busyAfter(c.Drain); handlers+settles == 0 {
		return nil
	} else if handlers > 0 {
		level := slog.LevelWarn
		if c.Drain == 0 {
			level = slog.LevelDebug // as the user asked for
		}
		c.Log.Log(context.Background(), level, "delayq: stopping handlers that outlived the drain",
			"handlers", handlers, "drain", c.Drain)
	}
	abort(ErrDrain)
	handlers, settles := c.busyAfter(obeyWithin)
	if settles > 0 {
		c.Log.Warn("delayq: stopped while messages are being settled; those that are not return when the leases end",
			"messages", settles)
	}
	if handlers > 0 {
		c.Telemetry.Failed(context.Background(), telemetry.IgnoredStop, handlers)
		c.Log.Error("delayq: handlers ignore their contexts; their messages return when the leases end",
			"handlers", handlers)
		return ErrDrain
	}
	return nil
}

// busyAfter waits for d, or until all workers are idle, and returns how many handlers run then and
// how many messages are being settled.
func (c *consumer) busyAfter(d time.Duration) (handlers, settles int) {
	t := c.Clock.NewTimer(d)
	defer t.Stop()
	for c.busy() > 0 {
		select {
		case <-c.changed:
		case <-t.Chan():
			settles = int(c.settles.Load())
			return max(c.busy()-settles, 0), settles
		}
	}
	return 0, 0
}

func (c *consumer) busy() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Workers - c.idle + c.pendingAcks
}

func (c *consumer) notify() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

func (c *consumer) pause(ctx context.Context, d time.Duration) {
	t := c.Clock.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.Chan():
	case <-ctx.Done():
	}
}
