package verdict

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"maragu.dev/goqite"

	"github.com/delayq/delayq/backend"
)

// goqiteBackend has one connection, as in goqite's README.
type goqiteBackend struct {
	handles
	path string
	db   *sql.DB
}

// goqiteLooks is the interval at which the runner of goqite's package jobs looks, by default.
const goqiteLooks = 100 * time.Millisecond

// Traits declare what is no word of goqite's, and the interval of its looks. A received message does not say its attempt.
func (b *goqiteBackend) Traits() backend.Traits {
	return backend.Traits{
		Name: "goqite", Resolution: time.Millisecond, Sweep: goqiteLooks, AnyName: true,
		Lacks: backend.Lacking(
			backend.Cancelling, backend.Rescheduling, backend.Counting, backend.Redriving, backend.Peeking, backend.Getting, backend.Purging,
			backend.Pausing, backend.Ordering, backend.OwnIDs, backend.KeepingHeaders, backend.Deduplicating, backend.CountingAttempts,
			backend.ExactAttempts, backend.Transactions,
		),
	}
}

func (b *goqiteBackend) Open(ctx context.Context, name string, _ backend.Options) (backend.Queue, error) {
	return b.add(ctx, func() (backend.Queue, error) { return &goqiteQueue{closer: newCloser(), db: b.db, name: name}, nil })
}

func (b *goqiteBackend) Close() error { return errors.Join(b.handles.Close(), b.db.Close()) }

type goqiteQueue struct {
	backend.Unsupported
	closer
	db   *sql.DB
	name string
	last atomic.Uint64
}

// queue is one whose messages have leases of that length. Messages may be received without end.
func (q *goqiteQueue) queue(lease time.Duration) *goqite.Queue {
	return goqite.New(goqite.NewOpts{DB: q.db, Name: q.name, Timeout: lease, MaxReceive: math.MaxInt32})
}

func (q *goqiteQueue) Schedule(ctx context.Context, ms []backend.Message) []error {
	i := -1
	return each(ctx, &q.closer, ms, func(m backend.Message) error {
		i++
		if len(m.Headers) > 0 {
			return lacks("goqite", "headers")
		}
		delay := m.Delay
		if !m.Due.IsZero() {
			delay = max(0, time.Until(m.Due))
		}
		if m.Body == nil {
			m.Body = []byte{}
		}
		id, err := q.queue(0).SendAndGetID(ctx, goqite.Message{Body: m.Body, Delay: delay})
		ms[i].ID = string(id)
		return err
	})
}

func (q *goqiteQueue) Receive(ctx context.Context, _ int, lease time.Duration) ([]backend.Delivery, error) {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-q.shut:
			cancel()
		case <-waiting.Done():
		}
	}()
	if err := q.ready(ctx); err != nil {
		return nil, err
	}
	m, err := q.queue(lease).ReceiveAndWait(waiting, goqiteLooks)
	if err != nil {
		return nil, errors.Join(q.ready(ctx), err)
	}
	return []backend.Delivery{{
		ID: string(m.ID), Body: m.Body, Attempt: 1, Token: backend.Token{Lo: q.last.Add(1)}, Until: time.Now().Add(lease),
	}}, nil
}

func (q *goqiteQueue) Ack(ctx context.Context, ls []backend.Lease) []error {
	return each(ctx, &q.closer, ls, func(l backend.Lease) error { return q.queue(0).Delete(ctx, goqite.ID(l.ID)) })
}

// Nack has the lease end after the delay: there is no other word.
func (q *goqiteQueue) Nack(ctx context.Context, rs []backend.Return) []error {
	return each(ctx, &q.closer, rs, func(r backend.Return) error { return q.queue(0).Extend(ctx, goqite.ID(r.ID), r.Delay) })
}

// Dead deletes: there are no dead letters but messages that were received too often.
func (q *goqiteQueue) Dead(ctx context.Context, bs []backend.DeadLetterRequest) []error {
	return each(ctx, &q.closer, bs, func(b backend.DeadLetterRequest) error { return q.queue(0).Delete(ctx, goqite.ID(b.ID)) })
}

func (q *goqiteQueue) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	return extends(ctx, &q.closer, ls, func(l backend.Lease) (time.Time, error) {
		end := time.Now().Add(lease)
		return end, q.queue(0).Extend(ctx, goqite.ID(l.ID), lease)
	})
}

func (q *goqiteQueue) Close() error { return q.closeOnce(func() error { return nil }) }
