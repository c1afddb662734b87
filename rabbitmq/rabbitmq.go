package rabbitmq

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
)

// Backend keeps queues in RabbitMQ. It is safe for concurrent use.
type Backend struct {
	options
	names   names
	pub     *publisher
	subs    *links
	dead    keyedLock // of queues whose dead letters are being read
	deaths  deathClock
	chunk   int // of dead letters that are read together
	check   *checker
	handles sync.Map // of *queue, to struct{}
	once    sync.Once
	closing atomic.Bool
}

var _ backend.Backend = (*Backend)(nil)

// New returns a backend on the broker of an AMQP URL, amqp://user:password@host:port/vhost. It has
// two connections, one to publish and one to consume. The first Open makes them, and they are made
// again whenever they break. A connection to consume takes half as many queues as the broker's
// channel_max allows channels, 1,023 by default. For more queues the backend makes further
// connections. To declare a deleted part of the topology again, it makes one more for a moment.
func New(url string, opts ...Option) *Backend {
	o := newOptions(url, opts)
	b := &Backend{options: o, names: names{o.namespace + "." + version}, chunk: math.MaxUint16}
	b.pub = &publisher{link: newLink("publishing", newDialer(o).connect, b.declare), declaring: make(chan struct{}, 1)}
	for use := range b.pub.opening {
		b.pub.opening[use] = make(chan struct{}, 1)
	}
	dial := func() *link {
		return newLink("consuming", newDialer(o).connect, func(*amqp.Connection) error { return nil })
	}
	b.subs = &links{dial: dial, all: []*link{dial()}, used: make(map[*link]int)}
	b.check = newChecker(b)
	return b
}

// declare declares the shared topology. It runs whenever a connection is made.
func (b *Backend) declare(conn *amqp.Connection) error {
	ch, err := conn.Channel()
	if err != nil {
		return explain("opening a channel", err)
	}
	defer func() { _ = ch.Close() }()
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	err = declareShared(ch, b.names, b.delayer, b.classic)
	if errors.Is(err, amqp.ErrClosed) { // by an earlier declaration, which has no reply
		err = explain("declaring the exchanges and queues of the namespace", cmp.Or(closeReason(closed), err))
	}
	return err
}

// Open returns a handle on the queue of that name, and declares it if it does not exist. The first
// Open connects, and returns the error if that fails. Later the backend reconnects in the
// background. It has no clock but the broker's: another one is an error.
func (b *Backend) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	if err := errors.Join(b.options.err, ctx.Err()); err != nil {
		return nil, err
	}
	if o.Clock != nil {
		return nil, &backend.UnsupportedError{Backend: traitName, Op: "another clock than the broker's"}
	}
	if strings.ContainsAny(name, "/*#") { // such a binding would match other queues' keys
		return nil, backend.Invalid("queue name", name, "one without a slash, star or hash")
	}
	sub, err := b.connect(ctx, o.Logger)
	if err != nil {
		return nil, err
	}
	q := newQueue(b, name, sub, o)
	err = q.declare(ctx)
	b.handles.Store(q, struct{}{})
	b.check.opened(o.Logger)
	if b.closing.Load() { // Close may not have seen it
		err = backend.ErrClosed
	}
	if err != nil {
		_ = q.Close()
		return nil, err
	}
	return q, nil
}

// connect makes the connections that a handle needs, if there are none, and returns the one to
// consume on.
func (b *Backend) connect(ctx context.Context, log *slog.Logger) (*link, error) {
	if err := b.pub.link.start(ctx, log); err != nil {
		return nil, err
	}
	for {
		sub := b.subs.acquire()
		if err := sub.start(ctx, log); err != nil {
			b.subs.release(sub)
			return nil, err
		}
		if !b.subs.overfull(sub) {
			return sub, nil
		}
		b.subs.release(sub)
	}
}

// forget removes a closed handle.
func (b *Backend) forget(q *queue) {
	b.handles.Delete(q)
	b.subs.release(q.sub)
}

// openQueues returns the open handles, by the routing keys of their queues.
func (b *Backend) openQueues() map[string]*queue {
	all := make(map[string]*queue)
	b.handles.Range(func(h, _ any) bool {
		q := h.(*queue)
		all[keyOf(q.name)] = q
		return true
	})
	return all
}

// Close closes all queues and the connections. Messages stay in the broker, which hands out
// messages in flight again.
func (b *Backend) Close() error {
	b.once.Do(func() {
		b.closing.Store(true)
		defer time.AfterFunc(closeWithin, b.subs.stop).Stop() // handles wait for a broker that hangs
		var handles sync.WaitGroup
		b.handles.Range(func(q, _ any) bool {
			handles.Go(func() { _ = q.(*queue).Close() }) // it never fails
			return true
		})
		handles.Wait()
		b.check.close()
		b.subs.close()
		b.pub.link.close()
	})
	return nil
}

// closeWithin bounds how long handles wait for the broker in Close. It is longer than giveBackWithin:
// what was sent by then is no duplicate.
const closeWithin = giveBackWithin + 5*time.Second

const traitName = "rabbitmq"

// Traits returns what the backend promises. Messages have no order, two pushes of one id are two
// messages, and leases end with the connection. With tombstones, delays are limited.
func (b *Backend) Traits() backend.Traits {
	lacks := backend.Lacking(
		backend.Rescheduling, backend.CountingScheduled, backend.Peeking, backend.Getting, backend.Purging, backend.Pausing, backend.Ordering, backend.Deduplicating,
		backend.UniqueWindows, backend.ExactAttempts, backend.SingleCopy, backend.CancelNotFound, backend.Transactions, backend.CountingActivity,
	)
	if b.tombstones == nil {
		lacks = lacks.With(backend.Cancelling)
	}
	if b.classic {
		lacks = lacks.With(backend.CountingAttempts)
	}
	return backend.Traits{Name: traitName, Lacks: lacks, Resolution: time.Millisecond, Leases: backend.InConnection, MaxDelay: b.maxDelay()}
}
