package redisson

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redischeck"
	"github.com/delayq/delayq/internal/redisqueue"
)

// Backend keeps queues in Redis as Redisson does. It is safe for concurrent use.
type Backend struct {
	queues *redisqueue.Backend
	setup  options
}

var _ backend.Backend = (*Backend)(nil)

// New returns a backend on a client of a single server, a Cluster or a Sentinel group. The caller
// closes the client, after the backend. Nothing is sent before the first queue is opened.
func New(client redis.UniversalClient, opts ...Option) *Backend {
	o := newOptions(client, opts)
	return newBackend(client, o, false)
}

func newBackend(client redis.UniversalClient, o options, owned bool) *Backend {
	b := &Backend{setup: o}
	b.queues = redisqueue.NewBackend(redisqueue.Config{
		Name: name, Client: client, Owned: owned, Poll: o.sweep, Err: o.err,
		Check: redischeck.Check,
		Store: b.openStore,
		KeyOf: b.keyOf,
	})
	return b
}

const name = "redisson"

// openStore makes what a handle works on.
func (b *Backend) openStore(ctx context.Context, queue string, o backend.Options) (redisqueue.Store, error) {
	s, err := b.store(queue, o)
	if err != nil {
		return redisqueue.Store{}, err
	}
	if err := s.checkTypes(ctx, queue); err != nil {
		return redisqueue.Store{}, err
	}
	rs := redisqueue.Store{Messages: s, Claim: s.claim, Clock: o.Clock}
	if !s.envelopes() {
		rs.Tend, rs.Spare = s.tend, spare()
	}
	return rs, nil
}

// Open returns a handle on the queue of that name. The first Open checks the server and warns of what
// may lose messages. A queue one of whose keys holds something of another program's is refused with a [backend.InvalidError]. A queue shared with Java is tended for as long as a handle on it is open, whether or not anybody
// receives: what is due and finds no worker here goes to where Java takes it.
func (b *Backend) Open(ctx context.Context, queue string, o backend.Options) (backend.Queue, error) {
	return b.queues.Open(ctx, queue, o)
}

// Close closes all queues, and the client where a URL made it. Messages stay in Redis. It waits up to 5 s for calls under way; where the
// server does not reply to them in that time, the error matches [backend.ErrUnavailable], and they end by the client's timeouts.
func (b *Backend) Close() error { return b.queues.Close() }

// Traits returns what the backend promises. With [Envelope] that is everything, to the millisecond, but for ids that stay
// taken when their messages are gone, and headers that a nack changes. What is shared with Java has neither headers nor ids of the pusher's.
func (b *Backend) Traits() backend.Traits {
	lacks := backend.Lacking(backend.ChangingHeaders, backend.UniqueWindows)
	if b.setup.codec != Envelope {
		lacks = lacks.With(backend.OwnIDs, backend.Deduplicating, backend.Headers)
	}
	return backend.Traits{Name: name, Lacks: lacks, Resolution: time.Millisecond, Sweep: b.setup.sweep, AnyName: true}
}
