package delayq

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/background"
	"github.com/delayq/delayq/internal/batcher"
	"github.com/delayq/delayq/internal/consumer"
	"github.com/delayq/delayq/internal/guard"
	"github.com/delayq/delayq/internal/limits"
	"github.com/delayq/delayq/internal/settle"
	"github.com/delayq/delayq/internal/telemetry"
	"github.com/delayq/delayq/internal/trim"
	"github.com/delayq/delayq/internal/valid"
	"github.com/delayq/delayq/memory"
)

// Queue is a delay queue: a message stays hidden until it is due, is handed to exactly one worker,
// and is handed out again until a worker acknowledges it.
//
// [New] and [Open] return the only implementation, and methods may be added. An application that
// fakes its queue asks for the smaller interface that it needs: [Pusher], [Canceler], [Receiver],
// [Consumer] or [Inspector].
//
// Every method is safe for concurrent use, and returns [ErrClosed] after Close and [ErrInvalid] for
// an argument that cannot be used. A method that needs a [Feature], or has an option that needs one,
// returns [ErrUnsupported] where the backend lacks it. All but Consume and Close return when their
// context ends, also while the store does not reply. The error of such a call matches its context's,
// and [ErrOutcomeUnknown] when the store may have received it: repeating the call does no harm.
// Errors are of type [*OpError].
type Queue interface {
	Pusher
	Canceler
	Receiver
	Consumer
	Inspector

	// Purge deletes all data of the queue, for every process: scheduled, ready and leased messages,
	// dead letters, quarantined messages, and ids that [UniqueFor] keeps. Handlers that run go on,
	// lose their leases, and get [ErrLeaseLost] when they settle. Messages pushed before the call
	// are gone when Purge returns nil; messages pushed meanwhile may be. It returns how many
	// messages it deleted, as far as is known when a reply was lost. It needs [Purging].
	Purge(ctx context.Context) (removed int64, err error)

	// PauseAll makes the store hand out none of the queue's messages, to any process, until
	// ResumeAll or the end that [PauseFor] or [PauseUntil] gives. Pushes, cancels, acks and
	// redriving go on, running handlers finish, and leases end as ever. Stats shows the pause. It
	// needs [Pausing].
	//
	// When it has returned nil the store leases no more messages. Those leased before are in
	// flight: a Receive returns them as soon as the reply is there, and a Consume may still hand
	// those that it has claimed ahead to handlers, for 100 ms at most; see [Prefetch].
	//
	// The store keeps the pause, not a process: restarts, Close, Purge and the last message do not
	// end it. A further PauseAll replaces its end. On a queue shared with Java, Java's processes go
	// on.
	PauseAll(ctx context.Context, opts ...PauseOption) error

	// ResumeAll ends a pause by PauseAll; without one it does nothing. Waiting workers of all
	// processes get what is due, as after a push. It does not end a Pause of a handle.
	ResumeAll(ctx context.Context) error

	// Supports reports whether the backend has a feature.
	Supports(f Feature) bool

	// Dead gives access to the queue's dead letters.
	Dead() DeadLetters

	// Close stops every Consume, and every Repeat of package schedule, and waits until they have
	// returned, which may take as long as their [Drain] and five seconds more. Then it ends every
	// Receive with [ErrClosed]. Messages stay in the store, except those of a memory backend that
	// New made by itself. A handler must not call Close. A second Close does nothing. While the
	// store does not reply, Close waits for the calls that are under way, on Redis for up to five
	// seconds, on RabbitMQ until the connection counts as lost: up to 30 seconds.
	Close() error
}

// Pusher is the part of a [Queue] that stores messages.
type Pusher interface {
	// Push stores a message that is due at once, or when [After] or [At] says. It returns the
	// message's id: the one given with [ID], or a new one, which sorts by the time of the push.
	// When err is nil the message is stored as durably as the backend keeps any.
	//
	// The id is returned with most errors too. To retry, push again with that id: every backend
	// with [Deduplicating] then stores the message once. A backend that lacks [OwnIDs] assigns the
	// id, and returns none with an error.
	//
	// After [ErrInvalid], [ErrUnsupported], [ErrFull] and [ErrDuplicate] the message is not stored.
	// [ErrUnavailable] is temporary: wait, and push again. If it does not also match
	// [ErrOutcomeUnknown], nothing was stored. After ErrOutcomeUnknown, the end of ctx and any
	// other error the message may be stored or not.
	//
	// The text of ErrDuplicate says whether the message with that id is scheduled, in flight, dead
	// or done. Treat it as success when you retry your own push, and only then. A handler that
	// pushes the id of its own message gets ErrDuplicate, since that message is in flight, and its
	// ack deletes the message. Such a handler returns [RetryAfter], or pushes another id.
	//
	// Concurrent calls of Push, Ack and Nack share round trips to stores that need them. Calls are
	// never delayed to form a batch: calls that arrive while a request is in flight are sent
	// together in the next one.
	Push(ctx context.Context, body []byte, opts ...PushOption) (id string, err error)

	// PushBatch stores messages in one round trip where the backend has one, at most [MaxBatch],
	// and returns their ids in the order of ms. When a message is invalid none is stored. When the
	// store rejects some, the others are stored, and the error is a [*BatchError]. Ids are also
	// returned for messages that failed or whose outcome is unknown, to push again with; where the
	// backend assigns the ids, those of rejected messages are empty.
	//
	// Each message has a limit of bytes, and the batch has none: process and store hold all of its
	// messages at once.
	PushBatch(ctx context.Context, ms []Message) (ids []string, err error)
}

// Canceler is the part of a [Queue] that changes messages which wait.
type Canceler interface {
	// Cancel deletes a message that waits. When it returns nil the message will never be handed
	// out. It returns [ErrInFlight] when a worker holds the message, and [ErrNotFound] when it is
	// done, dead or unknown. It needs [Cancelling].
	Cancel(ctx context.Context, id string) error

	// Reschedule makes a message that waits due at another time, sooner or later, and changes
	// nothing else. It returns the errors of Cancel, and needs [Rescheduling].
	Reschedule(ctx context.Context, id string, due time.Time) error

	// RescheduleAfter is Reschedule to a delay from now, as [After] counts it.
	RescheduleAfter(ctx context.Context, id string, delay time.Duration) error

	// CancelBatch cancels messages in one round trip where the backend has one, at most [MaxBatch].
	// When an id is invalid none is cancelled. When it fails for some, the others are cancelled,
	// and the error is a [*BatchError]. An id that is there twice is cancelled once: the second
	// entry is that of a message that is gone.
	CancelBatch(ctx context.Context, ids []string) error

	// RescheduleBatch reschedules messages as CancelBatch cancels them. Of several entries for one
	// id the last one holds.
	RescheduleBatch(ctx context.Context, ms []Move) error
}

// Receiver is the part of a [Queue] for workers with a loop of their own. The methods of a batch
// settle messages as the methods of [Delivery] settle one, in one round trip where the backend has
// one. When that fails for some, the error is a [*BatchError].
type Receiver interface {
	// Receive waits for a message to be due and takes it under a lease of the length set with
	// [WithLease]. Settle it before the lease ends, or [Delivery.Extend] the lease: a message whose
	// lease ends is handed out again. When ctx ends, nothing is taken and nothing is lost. After
	// any other error, [ErrUnavailable] above all, call it again after a pause: a message that was
	// taken and did not arrive is handed out again.
	Receive(ctx context.Context) (*Delivery, error)

	// ReceiveBatch waits like Receive and takes up to limit messages that are due by then, at least
	// one, each under a lease of its own; 1 <= limit <= [MaxBatch].
	ReceiveBatch(ctx context.Context, limit int) ([]*Delivery, error)

	// AckBatch acknowledges messages.
	AckBatch(ctx context.Context, ds []*Delivery) error

	// NackBatch gives messages back, each to be due again after delay.
	NackBatch(ctx context.Context, ds []*Delivery, delay time.Duration) error

	// ReleaseBatch gives messages back untouched.
	ReleaseBatch(ctx context.Context, ds []*Delivery) error

	// DeadLetterBatch makes messages dead letters with one reason.
	DeadLetterBatch(ctx context.Context, ds []*Delivery, reason string) error

	// DeadBatch is the old name of DeadLetterBatch.
	//
	// Deprecated: use DeadLetterBatch.
	DeadBatch(ctx context.Context, ds []*Delivery, reason string) error

	// ExtendBatch makes the leases end that long from now.
	ExtendBatch(ctx context.Context, ds []*Delivery, lease time.Duration) error
}

// Consumer is the part of a [Queue] that runs handlers.
type Consumer interface {
	// Consume calls h for each message as it becomes due until ctx ends or the queue is closed, and
	// settles the message by the result of h: nil acknowledges it, an error or a panic gives it
	// back to be due again later, and after the last attempt makes it a dead letter. While h runs,
	// the lease is renewed. The options are [Workers], [Retry], [MaxAttempts], [Timeout], [Drain],
	// [Prefetch], [RateLimit], [OnDead] and [Use]; see also [ValidateConsumeOptions]. A message's
	// own [Limits] replace MaxAttempts and Timeout.
	//
	// The contexts of handlers carry the values of ctx, but do not end with it.
	//
	// When it stops it takes no more messages, gives back untouched messages that h has not seen,
	// and waits for handlers as long as [Drain] says, and five seconds more. It returns nil once
	// all have returned, and [ErrDrain] when some have not. Failures of the store, such as
	// [ErrUnavailable], do not stop it: it logs them and tries again, less and less often.
	//
	// A handler that a stop ends early gives its message back untouched, and the attempt does not
	// count. The attempt counts when the handler has had the message for an hour, so that a handler
	// that hangs until each stop reaches [MaxAttempts].
	Consume(ctx context.Context, h Handler, opts ...ConsumeOption) error

	// Pause makes every Consume of this handle take no more messages, until Resume. Other handles
	// and processes go on. Handlers that run finish, and messages that no handler has seen are
	// given back untouched. Neither Pause nor Resume blocks, and calling either twice is calling it
	// once. Pause does not hold back Receive. [Queue.PauseAll] pauses all processes.
	Pause()

	// Resume ends a Pause.
	Resume()
}

// Inspector is the part of a [Queue] that shows its messages and changes nothing.
type Inspector interface {
	// Stats counts the queue's messages, those that other processes hold included. It needs
	// [Counting]. Some fields are [Unknown] where the backend lacks [CountingScheduled].
	Stats(ctx context.Context) (Stats, error)

	// Get returns the message of an id, in whatever state it is. It counts no attempt, and workers
	// get the message meanwhile, so that its state may have changed when Get returns. It returns
	// [ErrNotFound] for a message that is done, cancelled, deleted or unknown, except while
	// [UniqueFor] keeps its id: then its state is [StateDone]. It needs [Getting].
	Get(ctx context.Context, id string) (MessageInfo, error)

	// GetBatch returns the messages of up to [MaxBatch] ids in the order of the ids, in as many
	// round trips as their sizes ask for. When some are not there, the error is a [*BatchError],
	// and their entries of the result are zero.
	GetBatch(ctx context.Context, ids []string) ([]MessageInfo, error)

	// Peek returns up to limit messages that wait, the first due first, and takes none: it counts
	// no attempt, and workers still get them. cursor is "" at the start, then next of the call
	// before; next is "" after the last page, and an earlier page may be short or empty.
	// 1 <= limit <= [MaxBatch]. Messages in flight and dead letters are left out. It needs
	// [Peeking].
	//
	// The queue changes while pages are read. Of the messages that are not due yet, Peek skips none
	// because others come, go or move. On some backends a page is a few hundred messages at most,
	// whatever limit says. On a memory backend a page costs a walk over the messages before it.
	Peek(ctx context.Context, cursor string, limit int) (page []Pending, next string, err error)
}

// New returns the queue of that name on the backend given with [WithBackend]. Without one, the
// queue is on a memory backend of its own: New logs a warning that messages live in this process
// only, which [InMemory] says is meant.
//
// A name is up to 200 letters, digits and "-_.:"; other characters have a meaning to one store or
// another. New returns [ErrInvalid] for an option out of range, and [ErrUnsupported] for a feature
// of [Require] that the backend lacks.
//
// ctx bounds the opening alone, with the calls of the store that it takes. The queue lives until
// Close, however ctx ends.
func New(ctx context.Context, name string, opts ...Option) (Queue, error) {
	o, err := newOptions(ctx, "New", opts)
	if err != nil {
		return nil, opError("new", name, "", err)
	}
	if o.backend == nil {
		o.backend, o.own, o.forgotten = memory.New(), true, !o.inMemory
	}
	return open(ctx, "new", name, o)
}

// Open returns the queue that a URL names, on the backend whose package is the URL's
// scheme: "memory:///orders". The package must be imported, if only for its side effect:
//
//	import _ "github.com/delayq/delayq/zsetpoll"
//
// The backend's package documents its URLs; memory is always there. Package zsetpoll also reads
// redis://, rediss:// and unix://, and package rabbitmq amqp:// and amqps://. These name a store,
// as REDIS_URL does: the queue's name is [Named], or the URL's parameter queue. Open returns
// [ErrUnknownScheme] for an unknown scheme. Close also closes the connection that Open made. ctx
// bounds the opening alone, as in [New].
func Open(ctx context.Context, rawURL string, opts ...Option) (Queue, error) {
	var name string
	o, err := newOptions(ctx, "Open", opts)
	if err == nil {
		o.own = true
		o.backend, name, err = backend.DefaultMux().OpenNamed(ctx, rawURL, o.name)
	}
	if err != nil {
		return nil, opError("open", "", "", err)
	}
	return open(ctx, "open", name, o)
}

func open(ctx context.Context, op, name string, o *options) (Queue, error) {
	q, err := newQueue(ctx, name, o)
	switch {
	case err == nil:
		if o.forgotten {
			q.log.Warn("delayq: messages of this queue live in this process only; delayq.InMemory() says that this is meant")
		}
		return q, nil
	case o.own && ctx.Err() != nil:
		go func() { _ = o.backend.Close() }() // which may take longer than the context allows
	case o.own:
		_ = o.backend.Close()
	}
	return nil, opError(op, name, "", err)
}

// queue is the one Queue. It does everything that is common to all backends.
type queue struct {
	name    string
	clock   clockwork.Clock
	log     *slog.Logger
	lease   time.Duration
	backend backend.Backend
	own     bool // the backend is closed with the queue
	traits  backend.Traits
	store   backend.Queue
	batch   batcher.Store
	settle  settle.Settler
	random  func(n int64) int64 // from 0 to below n

	telemetry *telemetry.Recorder // nil without providers
	trimmer   *trim.Trimmer       // nil without a retention
	gate      *consumer.Gate
	loops     *background.Loops
	closeOnce sync.Once
	closeErr  error
}

func newQueue(ctx context.Context, name string, o *options) (*queue, error) {
	traits := o.backend.Traits()
	if err := valid.Name(name, traits); err != nil {
		return nil, err
	}
	log := guard.Logger(o.logger).With("queue", name, "backend", traits.Name)
	var recorder atomic.Pointer[telemetry.Recorder] // made after the store, which may report at once
	refused := func() { recorder.Load().Failed(context.Background(), telemetry.FailedRefused, 1) }
	store, err := o.backend.Open(ctx, name, backend.Options{Clock: o.clock, Logger: log, Refused: refused})
	if err != nil {
		return nil, err
	}
	q := &queue{
		name: name, clock: o.clock, log: log, lease: o.lease, backend: o.backend, own: o.own, traits: traits, store: store,
		batch:  batcher.ForStore(store, MaxBatch, traits.Calls),
		random: o.random, gate: consumer.NewGate(), loops: background.NewLoops(),
	}
	if q.clock == nil {
		q.clock = clockwork.NewRealClock()
	}
	for _, f := range o.required {
		err = cmp.Or(err, q.lacks(f, f.String()))
	}
	if err == nil {
		q.telemetry, err = q.newTelemetry(o)
	}
	if err != nil {
		_ = store.Close()
		return nil, err
	}
	recorder.Store(q.telemetry)
	if q.Supports(Redriving) {
		q.trimmer = trim.New(trim.Config{Keep: o.retention, Step: q.trimDead, Run: q.loops.Run, Log: log})
	}
	if q.Supports(Durability) {
		q.trimmer.Begin()
	}
	q.settle = settle.Settler{
		Store: store, Batch: q.batch, Telemetry: q.telemetry, Clock: q.clock, Log: log, Died: q.trimmer.Died,
	}
	return q, nil
}

func (q *queue) newTelemetry(o *options) (*telemetry.Recorder, error) {
	c := telemetry.Config{
		Queue: q.name, Backend: q.traits.Name, Clock: q.clock, Log: q.log,
		Meters: o.metrics, Tracers: o.traces, Propagator: o.propagator, ErrSettled: ErrSettled,
	}
	if q.Supports(Counting) {
		c.Stats = q.store.Stats
	}
	if q.Supports(KeepingHeaders) {
		c.HeadersFit = func(headers map[string]string) bool { return valid.Headers(headers, limits.Header) == nil }
	}
	return telemetry.New(c)
}

func (q *queue) Close() error {
	q.closeOnce.Do(func() {
		q.trimmer.Close()
		q.loops.Close()
		err := cmp.Or(q.telemetry.Close(), q.store.Close())
		if q.own {
			err = cmp.Or(err, q.backend.Close())
		}
		q.closeErr = q.fail("close", "", err)
	})
	return q.closeErr
}

// Background returns what package schedule uses of the queue. See [background.HostOf].
func (q *queue) Background() background.Host {
	return background.Host{Name: q.name, Traits: q.traits, Clock: q.clock, Log: q.log, Run: q.loops.Run}
}

// fail wraps a backend's error with the name of the operation; nil stays nil. A value of no queue
// has none.
func (q *queue) fail(op, id string, err error) error {
	if q == nil {
		return opError(op, "", id, err)
	}
	return opError(op, q.name, id, err)
}

// String helps a %v in a log.
func (q *queue) String() string { return fmt.Sprintf("%s queue %q", q.traits.Name, q.name) }
