package redisson

import (
	"context"
	"math/rand/v2"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/queue"
	"github.com/delayq/delayq/internal/redis/script"
)

// Backend keeps queues in Redis as Redisson does. It is safe for concurrent use.
type Backend struct {
	queues *queue.Backend
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
	b.queues = queue.NewBackend(queue.Config{
		Name: name, Client: client, Owned: owned, Poll: o.sweep, Err: o.err,
		Source: b.openSource,
		KeyOf:  b.keyOf,
		Keys:   func(queue string) []string { return namesOf(o.prefix + queue).allKeys() },

		Registry: "delayq_queues:" + o.prefix,
	})
	return b
}

const name = "redisson"

// openSource makes the source of a handle.
func (b *Backend) openSource(ctx context.Context, name string, o backend.Options) (queue.Source, error) {
	s, err := b.store(name, o)
	if err != nil {
		return queue.Source{}, err
	}
	if err := s.checkTypes(ctx, name); err != nil {
		return queue.Source{}, err
	}
	source := queue.Source{Messages: s, Claim: s.claim, Clock: o.Clock}
	if !s.envelopes() {
		source.Maintain, source.IdleFor = s.maintain, leastIdle+rand.N(moreIdle)
	}
	return source, nil
}

// Open returns a handle on the queue of that name. The first Open checks the server and warns of
// settings that may lose messages. Where another program has written to one of the queue's keys,
// the error is a [backend.InvalidError]. A queue shared with Java is maintained for as long as a
// handle on it is open, even without a Receive: a due message that no worker here wants goes to the
// list where Java takes it.
func (b *Backend) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	return b.queues.Open(ctx, name, o)
}

// Close closes all queues, and the client where a URL made it. Messages stay in Redis. It waits up
// to 5 s for calls under way; where the server does not reply to them in that time, the error
// matches [backend.ErrUnavailable], and they end by the client's timeouts.
func (b *Backend) Close() error { return b.queues.Close() }

// Traits returns the backend's promises. With [Envelope] that is everything, to the millisecond,
// except ids that stay taken when their messages are gone, headers that a nack changes, and counts of
// pushes and acks, which Java would not count. A queue shared with Java has neither headers nor ids
// of the pusher's.
func (b *Backend) Traits() backend.Traits {
	lacks := backend.Lacking(backend.ChangingHeaders, backend.UniqueWindows, backend.Replacing, backend.Transactions, backend.CountingActivity)
	if b.setup.codec != Envelope {
		lacks = lacks.With(backend.OwnIDs, backend.Deduplicating, backend.KeepingHeaders)
	}
	return backend.Traits{Name: name, Lacks: lacks, Resolution: script.Resolution, Sweep: b.setup.sweep, AnyName: true}
}
