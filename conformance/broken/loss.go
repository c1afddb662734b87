package broken

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delayq/delayq/backend"
)

var lossFaults = []Fault{
	{"loses a message on nack", "nack-keeps", func(q *queue) backend.Queue { return &nackLoser{q} }},
	{"loses a message when a context ends", "context-end-loses-nothing", func(q *queue) backend.Queue { return &popper{q} }},
	{"takes a message under a context that has ended", "context-ended", func(q *queue) backend.Queue { return &deafTaker{q} }},
	{"loses what a dead worker held", "lease-ends", func(q *queue) backend.Queue { return &ackOnTake{q} }},
	{"loses the rest of a batch after one failure", "batch-outcomes", func(q *queue) backend.Queue { return &allOrNothing{q} }},
	{"hands out more than was asked for", "receive-limit", func(q *queue) backend.Queue { return &generous{q} }},
	{"loses a message one time in fifty when a call is broken off", "random-cancellations", func(q *queue) backend.Queue { return &leaky{queue: q} }},
	{"hands a message to two workers", "exactly-one-worker", func(q *queue) backend.Queue { return &duplicator{queue: q} }},
	{"hands a message out again after its ack", "done-is-done", func(q *queue) backend.Queue { return &lateAcker{q} }},
	{"replaces a message by a second one of its id", "same-id", func(q *queue) backend.Queue { return &replacer{q} }},
	{"leaves an entry behind for each message", "leaves-nothing", func(q *queue) backend.Queue { return &litterer{queue: q} }},
	{"miscounts messages in flight", "stats", func(q *queue) backend.Queue { return &miscounter{q} }},
	{"mixes up queues whose names are alike", "queues-are-apart", mixUp},
}

type nackLoser struct{ *queue }

func (q *nackLoser) Nack(ctx context.Context, rs []backend.Return) []error {
	ls := make([]backend.Lease, len(rs))
	for i, r := range rs {
		ls[i] = r.Lease
	}
	return q.Ack(ctx, ls)
}

// popper goes on receiving after the context has ended, and drops what it gets, as a BLPOP on a
// connection that the client has given up on.
type popper struct{ *queue }

func (q *popper) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	type result struct {
		ds  []backend.Delivery
		err error
	}
	got := make(chan result, 1)
	go func() {
		ds, err := q.whole.Receive(context.WithoutCancel(ctx), limit, lease)
		ours := slices.Clone(ds) // whoever receives them may change them
		got <- result{ds, err}
		if ctx.Err() != nil {
			q.drop(ours)
		}
	}()
	select {
	case r := <-got:
		return r.ds, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (q *queue) drop(ds []backend.Delivery) {
	for _, d := range ds {
		q.Ack(context.Background(), []backend.Lease{d.Lease()})
	}
}

type deafTaker struct{ *queue }

func (q *deafTaker) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	if ctx.Err() == nil {
		return q.whole.Receive(ctx, limit, lease)
	}
	return q.now(limit, lease)
}

// now takes what is due. It asks first, so that it never sleeps on the queue's clock.
func (q *queue) now(limit int, lease time.Duration) ([]backend.Delivery, error) {
	if s, err := q.Stats(context.Background()); err != nil || s.Ready == 0 {
		return nil, errors.Join(err, context.DeadlineExceeded)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	return q.whole.Receive(ctx, limit, lease)
}

// ackOnTake pops: it keeps no lease, and settles without looking.
type ackOnTake struct{ *queue }

func (q *ackOnTake) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	ds, err := q.whole.Receive(ctx, limit, lease)
	q.drop(ds)
	return ds, err
}

func (q *ackOnTake) Ack(context.Context, []backend.Lease) []error { return nil }

type allOrNothing struct{ *queue }

func (q *allOrNothing) Schedule(ctx context.Context, ms []backend.Message) []error {
	for i := range ms {
		if errs := q.whole.Schedule(ctx, ms[i:i+1]); errs != nil {
			return backend.FailAll(len(ms), errs[0])
		}
	}
	return nil
}

type generous struct{ *queue }

func (q *generous) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	return q.whole.Receive(ctx, limit+1, lease)
}

// leaky drops what it got when the context ended meanwhile, one time in fifty.
type leaky struct {
	*queue
	n atomic.Int64
}

func (q *leaky) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	ds, err := q.whole.Receive(ctx, limit, lease)
	if len(ds) > 0 && q.n.Add(1)%50 == 0 {
		q.drop(ds)
		return nil, context.Canceled
	}
	return ds, err
}

// duplicator hands out each tenth message a second time.
type duplicator struct {
	*queue
	mu    sync.Mutex
	n     int
	again []backend.Delivery
}

func (q *duplicator) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	if ds := q.repeat(nil); ds != nil {
		return ds, nil
	}
	ds, err := q.whole.Receive(ctx, limit, lease)
	q.repeat(ds)
	return ds, err
}

// repeat takes what is to be handed out again, or notes it.
func (q *duplicator) repeat(ds []backend.Delivery) (again []backend.Delivery) {
	q.mu.Lock()
	defer q.mu.Unlock()
	again = q.again
	q.again = nil
	if q.n += len(ds); q.n >= 10 {
		q.n, q.again = 0, slices.Clone(ds[:1]) // who received it may change it
	}
	return again
}

func (q *duplicator) Ack(ctx context.Context, ls []backend.Lease) []error {
	q.whole.Ack(ctx, ls)
	return nil
}

// lateAcker says that it has deleted the message, which comes again when its lease ends.
type lateAcker struct{ *queue }

func (q *lateAcker) Ack(ctx context.Context, ls []backend.Lease) []error {
	_, errs := q.Extend(ctx, ls, time.Second)
	return errs
}

type replacer struct{ *queue }

func (q *replacer) Schedule(ctx context.Context, ms []backend.Message) []error {
	for _, m := range ms {
		q.Cancel(ctx, []string{m.ID})
	}
	return q.whole.Schedule(ctx, ms)
}

// litterer keeps an entry of each message in a queue that nobody looks at.
type litterer struct {
	*queue
	once sync.Once
	side backend.Queue
}

func (q *litterer) Schedule(ctx context.Context, ms []backend.Message) []error {
	q.once.Do(func() { q.side, _ = q.backend.Open(ctx, q.name+".index", q.options) })
	q.side.Schedule(ctx, changed(ms, func(m *backend.Message) { m.Body, m.Headers = nil, nil }))
	return q.whole.Schedule(ctx, ms)
}

type miscounter struct{ *queue }

func (q *miscounter) Stats(ctx context.Context) (backend.Stats, error) {
	s, err := q.whole.Stats(ctx)
	s.Ready, s.InFlight = s.Ready+s.InFlight, 0
	return s, err
}

// mixUp keeps only part of a queue's name.
func mixUp(q *queue) backend.Queue {
	short := q.name[:min(len(q.name), len("conformance.queues-are-apart"))]
	alike, err := q.backend.Open(context.Background(), short, q.options)
	if err != nil {
		return q
	}
	q.whole = alike.(whole)
	return q
}
