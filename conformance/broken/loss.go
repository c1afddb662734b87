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
	{Name: "loses a message on nack", Rule: "nack-keeps", wrap: func(q *queue) backend.Queue { return &nackLoser{q} }},
	{Name: "loses a message when a context ends", Rule: "context-end-loses-nothing", wrap: func(q *queue) backend.Queue { return &popper{q} }},
	{Name: "takes a message under a context that has ended", Rule: "context-ended", wrap: func(q *queue) backend.Queue { return &deafTaker{q} }},
	{Name: "loses what a dead worker held", Rule: "lease-ends", wrap: func(q *queue) backend.Queue { return &ackOnTake{q} }},
	{Name: "loses the rest of a batch after one failure", Rule: "batch-outcomes", wrap: func(q *queue) backend.Queue { return &allOrNothing{q} }},
	{Name: "hands out more than was asked for", Rule: "receive-limit", wrap: func(q *queue) backend.Queue { return &generous{q} }},
	{Name: "loses a message one time in fifty when a call is broken off", Rule: "random-cancellations", wrap: func(q *queue) backend.Queue { return &leaky{queue: q} }},
	{Name: "hands a message to two workers", Rule: "exactly-one-worker", wrap: func(q *queue) backend.Queue { return &duplicator{queue: q} }},
	{Name: "hands a message out again after its ack", Rule: "done-is-done", wrap: func(q *queue) backend.Queue { return &lateAcker{q} }},
	{Name: "replaces a message by a second one of its id", Rule: "same-id", wrap: func(q *queue) backend.Queue { return &replacer{q} }},
	{Name: "leaves an entry behind for each message", Rule: "leaves-nothing", wrap: func(q *queue) backend.Queue { return &litterer{queue: q} }},
	{Name: "miscounts messages in flight", Rule: "stats", wrap: func(q *queue) backend.Queue { return &miscounter{q} }},
	{Name: "mixes up queues whose names are alike", Rule: "queues-are-apart", wrap: mixUp},
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
		ds, err := q.Queue.Receive(context.WithoutCancel(ctx), limit, lease)
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
		return q.Queue.Receive(ctx, limit, lease)
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
	return q.Queue.Receive(ctx, limit, lease)
}

// ackOnTake pops: it keeps no lease, and settles without looking.
type ackOnTake struct{ *queue }

func (q *ackOnTake) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	ds, err := q.Queue.Receive(ctx, limit, lease)
	q.drop(ds)
	return ds, err
}

func (q *ackOnTake) Ack(context.Context, []backend.Lease) []error { return nil }

type allOrNothing struct{ *queue }

func (q *allOrNothing) Schedule(ctx context.Context, ms []backend.Message) []error {
	for i := range ms {
		if errs := q.Queue.Schedule(ctx, ms[i:i+1]); errs != nil {
			return backend.FailAll(len(ms), errs[0])
		}
	}
	return nil
}

type generous struct{ *queue }

func (q *generous) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	return q.Queue.Receive(ctx, limit+1, lease)
}

// leaky drops what it got when the context ended meanwhile, one time in fifty.
type leaky struct {
	*queue
	n atomic.Int64
}

func (q *leaky) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	ds, err := q.Queue.Receive(ctx, limit, lease)
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
	ds, err := q.Queue.Receive(ctx, limit, lease)
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
	q.Queue.Ack(ctx, ls)
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
	return q.Queue.Schedule(ctx, ms)
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
	return q.Queue.Schedule(ctx, ms)
}

type miscounter struct{ *queue }

func (q *miscounter) Stats(ctx context.Context) (backend.Stats, error) {
	s, err := q.Queue.Stats(ctx)
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
	q.Queue = alike
	return q
}
