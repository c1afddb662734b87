package delayq

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/batcher"
	"github.com/delayq/delayq/internal/guard"
	"github.com/delayq/delayq/internal/telemetry"
	"github.com/delayq/delayq/memory"
)

// Queue is a delay queue: a message stays hidden until it is due, is handed to
// exactly one worker, and is handed out again until a worker says that it is done.
//
// [New] and [Open] return the only implementation; methods may be added. Every method
// is safe for concurrent use and answers [ErrClosed] after Close and [ErrInvalid] to an
// argument that cannot be used. All but Consume and Close block for no longer than their
// context allows, cancelled or expired, also while the store does not reply. The error of such a call matches that of its
// context, and [ErrOutcomeUnknown] where the store may have been told: repeating the call does no harm. Errors are of type [*OpError].
type Queue interface {
	// Push stores a message that is due at once, or when [After] or [At] says. It
	// returns the message's id: the one given with [ID], or a new one, which sorts by
	// the time of the push. When err is nil the message is stored as durably as the
	// backend keeps any. The id is returned with most errors too: push again with it, and the message
	// is stored once, on every backend with the feature [Deduplicating]. A backend without
	// [OwnIDs] makes the id: it returns [ErrUnsupported] for [ID], and there is none after an error.
	// [UniqueFor] keeps the id taken when the message is gone.
	//
	// After [ErrInvalid], [ErrUnsupported], [ErrFull] and [ErrDuplicate] the message is not stored. [ErrUnavailable] is temporary: wait, and push
	// again. Without [ErrOutcomeUnknown] beside it nothing was stored. After ErrOutcomeUnknown, the end of ctx and any
	// other error the message may be stored or not.
	//
	// ErrDuplicate is success to a caller that repeats its own push. It is not where the first message is another one, above all for a handler
	// that pushes the id of the message that it handles: that one is in flight, stays as it is, and is gone with the ack. Such
	// a handler gives its message back, as with [RetryAfter], or pushes another id.
	//
	// Concurrent calls of Push, Ack and Nack share round trips to stores that need them. Calls are never
	// delayed for that: those that arrive while others are in flight are sent together.
	Push(ctx context.Context, body []byte, opts ...PushOption) (id string, err error)

	// PushBatch stores messages in one round trip where the backend has one, and
	// returns their ids in the order of ms. When a message is invalid none is stored.
	// When the store refuses some, the others are stored, and the error is a
	// [*BatchError] with an entry for each. At most [MaxBatch] messages. A batch has no limit of bytes of its own: each message has one,
	// and process and store hold all of them at once. Ids are also returned for messages that failed or whose
	// outcome is unknown, to push again with. Where the backend makes the ids, those of refused messages are empty.
	PushBatch(ctx context.Context, ms []Message) (ids []string, err error)

	// Cancel takes a message back. When it returns nil the message will never be
	// handed out. It answers [ErrInFlight] when a worker has it, [ErrNotFound] when
	// it is done, dead or unknown, and [ErrUnsupported] where the backend cannot.
	Cancel(ctx context.Context, id string) error

	// Reschedule makes a message that waits due at another time, sooner or later. The
	// rest of it stays as it is. Errors are those of Cancel.
	Reschedule(ctx context.Context, id string, due time.Time) error

	// Receive waits for a message to be due and takes it under a lease of the length
	// set with [WithLease]. Settle it before the lease ends, or [Delivery.Extend] the
	// lease: a message whose lease ends is handed out again. When ctx ends, nothing is
	// taken and nothing lost. After any other error, [ErrUnavailable] above all, call it again, after a pause: a message that was
	// taken and did not arrive comes again.
	Receive(ctx context.Context) (*Delivery, error)

	// ReceiveBatch waits like Receive and takes up to limit messages that are due by
	// then, at least one, each under a lease of its own; 1 <= limit <= [MaxBatch].
	ReceiveBatch(ctx context.Context, limit int) ([]*Delivery, error)

	// AckBatch acknowledges messages in one round trip where the backend has one. When
	// it fails for some, the error is a [*BatchError] with an entry for each, [ErrSettled] for those that
	// were settled before.
	AckBatch(ctx context.Context, ds []*Delivery) error

	// NackBatch gives messages back as [Delivery.Nack] does, each to be due again after delay. It reports errors as AckBatch does, as do
	// the next three.
	NackBatch(ctx context.Context, ds []*Delivery, delay time.Duration) error

	// ReleaseBatch gives messages back untouched, as [Delivery.Release] does: what a worker that stops has received and not begun.
	ReleaseBatch(ctx context.Context, ds []*Delivery) error

	// DeadBatch makes messages dead letters with one reason, as [Delivery.Dead] does.
	DeadBatch(ctx context.Context, ds []*Delivery, reason string) error

	// ExtendBatch makes the leases end that long from now, as [Delivery.Extend] does.
	ExtendBatch(ctx context.Context, ds []*Delivery, lease time.Duration) error

	// Consume calls h for each message as it becomes due until ctx ends or the queue is
	// closed, and settles the message by what h returns: nil acknowledges it, an
	// error or a panic gives it back to be due again later, and after the last attempt
	// makes it a dead letter. While h runs, the lease is renewed. See [Workers],
	// [Retry], [MaxAttempts] and [Drain] for what can be set, and [ValidateConsumeOptions].
	//
	// The contexts of handlers carry the values of ctx, but do not end with it.
	//
	// When it stops it takes no more messages, gives back untouched what h has not seen, and
	// waits for handlers as long as [Drain] says, and five seconds more. It returns nil once
	// all have returned, and [ErrDrain] when some have not. Failures of the store, [ErrUnavailable] and any other, do not
	// stop it: it logs them and tries again, less and less often.
	//
	// A handler that a stop ends early gives its message back untouched, and the attempt does not count. It does count where the handler has
	// had the message for an hour, so that one that hangs until each stop reaches [MaxAttempts].
	Consume(ctx context.Context, h Handler, opts ...ConsumeOption) error

	// Repeat pushes a message with this body at each occurrence of the schedule, until ctx ends or the queue is closed;
	// then it returns nil. However many processes run it with one name, each occurrence is one message. See [Schedule].
	//
	// It pushes the next occurrence as soon as the one before is due, as a message due then, with an id made of the
	// name and the time, such as "report@2026-05-01T12:00:00Z", and with [UniqueFor] an hour and more beyond it: the
	// clocks of the processes may differ by up to an hour. So the next occurrence also comes when all of these
	// processes end meanwhile; those after it do not, and nobody makes up for them. It also comes when the schedule has
	// changed since: Cancel takes it back by its id. An occurrence farther ahead than 399 days, or than the backend's
	// longest delay, is pushed when no more than that is left.
	//
	// Failures of the store do not stop it: it logs them and tries again, less and less often. An occurrence that it
	// could not push until a minute after its time is left out, and that is logged too.
	//
	// The name is 1 to 200 bytes of UTF-8 without control characters. Of the options only [Header] may be given. It
	// answers [ErrUnsupported] where the backend lacks [OwnIDs] or [UniqueWindows], and returns nil early, and logs it, when the
	// schedule has no further occurrence. A schedule that panics is an error.
	Repeat(ctx context.Context, name string, s Schedule, body []byte, opts ...PushOption) error

	// Pause makes every Consume of this handle take no more messages, until Resume; other handles and processes go on. Handlers that run
	// finish, and what none has seen is given back untouched. It does not block, nor does Resume, and calling either twice is
	// calling it once. Receive is not held back.
	Pause()

	// Resume ends a Pause.
	Resume()

	// Stats counts the queue's messages, those that other processes hold included. It
	// answers [ErrUnsupported] where the backend cannot count.
	Stats(ctx context.Context) (Stats, error)

	// Peek returns up to limit messages that wait, the first due first, without taking them: it counts no attempt and
	// keeps nobody from them. cursor is "" at the start, then what the call before returned; next is "" after the last, and
	// a page may be short, or empty, before that. 1 <= limit <= [MaxBatch]. Messages in flight and dead letters are left out.
	//
	// It is a look at what goes on changing. Of the messages that are not due yet, those that come, go or move while pages are
	// read make it skip none of the others. A page is a few hundred messages at most on some backends, whatever limit says. On
	// a memory backend it costs a walk over what comes before it. It answers [ErrUnsupported] where the backend cannot.
	Peek(ctx context.Context, cursor string, limit int) (page []Pending, next string, err error)

	// Purge deletes all that the store keeps of the queue, for every process: messages that wait, messages in flight, dead
	// letters, what is quarantined, and ids that [UniqueFor] keeps taken. Handlers that run go on, lose their
	// leases, and get [ErrLeaseLost] when they settle. What was pushed before the call is gone when it returns nil; what is pushed
	// meanwhile may be. It returns how many messages it deleted, as far as is known where a reply was lost. It answers
	// [ErrUnsupported] where the backend cannot.
	Purge(ctx context.Context) (removed int64, err error)

	// Supports reports whether the backend has a feature.
	Supports(f Feature) bool

	// Dead gives access to the queue's dead letters.
	Dead() DeadLetters

	// Close stops every Consume and Repeat and waits until they have returned, which may take as long as its
	// [Drain] and five seconds more, then wakes every Receive with [ErrClosed]. Messages stay in the store, except those of a memory
	// backend that New made by itself. A handler must not call Close. A second
	// Close does nothing. Where the store does not reply, Close waits for what is under way, on Redis for up to five seconds.
	Close() error
}

// Handler handles one message: nil means done, and an error that it failed; [ErrDrop], [ErrDeadLetter] and [RetryAfter] say more. ctx ends when
// the handler must stop: its lease is lost, it has taken longer than [Timeout] allows, or a stop longer than [Drain] does. [context.Cause]
// is [ErrLeaseLost], [ErrTimeout] or [ErrDrain]. The handler may settle the message itself; what it
// returns then only goes to the log.
type Handler func(ctx context.Context, d *Delivery) error

// MaxBatch is the largest number of messages, ids or dead letters in one call.
const MaxBatch = 10_000

// New returns the queue of that name on the backend given with [WithBackend], by
// default on a memory backend of its own.
//
// A name is up to 200 letters, digits and "-_.:" (other characters mean something to
// one store or another). An option out of range answers [ErrInvalid]; a feature
// asked for with [Require] that the backend lacks answers [ErrUnsupported].
//
// ctx bounds the opening alone, with the calls of the store that it takes. The queue lives until Close, however ctx ends.
func New(ctx context.Context, name string, opts ...Option) (Queue, error) {
	o, err := newOptions(opts)
	if err != nil {
		return nil, opError("new", name, "", err)
	}
	if err := validContext(ctx); err != nil {
		return nil, opError("new", name, "", err)
	}
	own := o.backend == nil
	if own {
		o.backend = memory.New()
	}
	return open(ctx, "new", name, o, own)
}

// Open returns the queue that a URL names, on the backend whose package is the URL's
// scheme: "memory:///orders". The package must be imported, if only for its side effect:
//
//	import _ "github.com/delayq/delayq/memory"
//
// The backend's package documents its URLs; memory is always there. An unknown scheme answers
// [ErrUnknownScheme]. Close also closes the connection that Open made. ctx bounds the opening alone, as in [New].
func Open(ctx context.Context, rawURL string, opts ...Option) (Queue, error) {
	o, err := newOptions(opts)
	if err == nil && o.backend != nil {
		err = backend.Invalid("option", described("WithBackend"), "a URL or a backend, not both")
	}
	if err == nil {
		err = validContext(ctx)
	}
	if err != nil {
		return nil, opError("open", "", "", err)
	}
	b, name, err := backend.DefaultMux().Open(ctx, rawURL)
	if err != nil {
		return nil, opError("open", "", "", err)
	}
	o.backend = b
	return open(ctx, "open", name, o, true)
}

func open(ctx context.Context, op, name string, o *options, own bool) (Queue, error) {
	q, err := openQueue(ctx, name, o)
	if err == nil {
		q.own = own
		return q, nil
	}
	switch {
	case own && ctx.Err() != nil:
		go func() { _ = o.backend.Close() }() // which may take longer than the context allows
	case own:
		_ = o.backend.Close()
	}
	return nil, opError(op, name, "", err)
}

// queue is the one Queue. What is common to all backends happens here and nowhere else.
type queue struct {
	name    string
	clock   clockwork.Clock
	log     *slog.Logger
	lease   time.Duration
	backend backend.Backend
	own     bool // the backend is closed with the queue
	traits  backend.Traits

	store backend.Queue

	pushes *batcher.Batcher[backend.Message]
	acks   *batcher.Batcher[backend.Lease]
	nacks  *batcher.Batcher[backend.Return]

	telemetry *telemetry.Recorder // nil without providers

	gate      *gate
	stopping  context.Context // ends when Close begins
	stop      context.CancelFunc
	consumers sync.WaitGroup
	mu        sync.Mutex // between the start of a Consume and Close
	closeOnce sync.Once
	closeErr  error
}

func openQueue(ctx context.Context, name string, o *options) (*queue, error) {
	traits := o.backend.Traits()
	if o.clock != nil {
		o.clock = guard.Clock(o.clock)
	}
	if err := validName(name, traits); err != nil {
		return nil, err
	}
	log := guard.Logger(o.logger).With("queue", name, "backend", traits.Name)
	store, err := o.backend.Open(ctx, name, backend.Options{Clock: o.clock, Logger: log})
	if err != nil {
		return nil, err
	}
	q := &queue{name: name, clock: o.clock, log: log, lease: o.lease, backend: o.backend, traits: traits, store: store, gate: newGate()}
	if q.clock == nil {
		q.clock = clockwork.NewRealClock()
	}
	q.batch()
	if err := q.require(o.required); err != nil {
		_ = store.Close()
		return nil, err
	}
	if q.telemetry, err = q.newTelemetry(o); err != nil {
		_ = store.Close()
		return nil, err
	}
	q.stopping, q.stop = context.WithCancel(context.Background())
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
	if q.Supports(Headers) {
		c.HeadersFit = func(headers map[string]string) bool { return validHeaders(headers) == nil }
	}
	return telemetry.New(c)
}

func (q *queue) Close() error {
	q.closeOnce.Do(func() {
		q.mu.Lock()
		q.stop()
		q.mu.Unlock()
		q.consumers.Wait()
		err := firstError(q.telemetry.Close(), q.store.Close())
		if q.own {
			err = firstError(err, q.backend.Close())
		}
		q.closeErr = q.fail("close", "", err)
	})
	return q.closeErr
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// validBatch checks a call on n messages. One on none asks nothing of the store, and is answered
// here as the store would.
func (q *queue) validBatch(ctx context.Context, n int) error {
	if err := firstError(validContext(ctx), within("batch size", n, 0, MaxBatch)); err != nil {
		return err
	}
	if n == 0 && q.stopping.Err() != nil {
		return ErrClosed
	}
	return nil
}

// fail wraps a backend's error with what was being done; nil stays nil.
func (q *queue) fail(op, id string, err error) error { return opError(op, q.name, id, err) }

func (q *queue) unsupported(op string) error {
	return &backend.UnsupportedError{Backend: q.traits.Name, Op: op}
}

// String helps a %v in a log.
func (q *queue) String() string { return fmt.Sprintf("%s queue %q", q.traits.Name, q.name) }
