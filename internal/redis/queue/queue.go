package queue

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/call"
)

// Queue is a handle on a queue. All its Receive calls share one fetcher: a goroutine that claims
// for all of them at once, and sleeps until a message is due.
type Queue struct {
	Source
	clock clockwork.Clock // to sleep on
	log   *slog.Logger
	hub   *Hub

	fetching context.Context // ends when Close begins
	stop     context.CancelFunc
	fetched  chan struct{} // closed when the fetcher has ended
	calls    *call.Group

	life    sync.Mutex // of the fetcher: held while it is started, and never within mu
	started bool

	mu      sync.Mutex
	closed  bool
	waiting []*waiter
	arrived chan struct{} // holds one when a Receive has begun to wait
	woken   chan struct{} // holds one when soonest has changed
	soonest time.Time     // the first due time of the wake-ups since the last claim
	closing sync.Once
	onClose func(*Queue) // nil for none
}

var _ backend.Queue = (*Queue)(nil)

// A waiter is one Receive.
type waiter struct {
	limit int
	lease time.Duration
	got   chan received // holds one
}

type received struct {
	ds  []backend.Delivery
	err error
}

// newQueue returns a handle on a source. hub wakes it when a message becomes the first.
func newQueue(s Source, hub *Hub, calls *call.Group, log *slog.Logger) *Queue {
	q := &Queue{
		Source: s, clock: s.Clock, log: log, hub: hub,
		calls: calls, fetched: make(chan struct{}), arrived: make(chan struct{}, 1), woken: make(chan struct{}, 1),
	}
	if q.clock == nil {
		q.clock = clockwork.NewRealClock()
	}
	q.fetching, q.stop = context.WithCancel(context.Background())
	return q
}

// Receive is as in backend.Queue.
func (q *Queue) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := &waiter{limit: limit, lease: lease, got: make(chan received, 1)}
	if err := q.enter(w); err != nil {
		return nil, err
	}
	q.start()
	select {
	case r := <-w.got:
		return r.ds, r.err
	case <-ctx.Done():
		return q.leave(w, ctx.Err())
	case <-q.fetching.Done():
		return q.leave(w, backend.ErrClosed)
	}
}

// start starts the fetcher: with the first Receive, or at once for a queue that has to be
// maintained.
func (q *Queue) start() {
	q.life.Lock()
	defer q.life.Unlock()
	if q.started || q.fetching.Err() != nil {
		return
	}
	q.started = true
	q.hub.add(q)
	q.calls.Go(func() {
		defer close(q.fetched)
		q.fetch()
	})
}

// awaitFetcher waits for the last claim, so that its messages are given back. A claim that a server
// holds up ends by the client's timeouts.
func (q *Queue) awaitFetcher() {
	late := time.NewTimer(closeWithin - giveBackWithin)
	defer late.Stop()
	select {
	case <-q.fetched:
	case <-late.C:
	}
}

func (q *Queue) wasStarted() bool {
	q.life.Lock()
	defer q.life.Unlock()
	return q.started
}

// enter adds a waiter.
func (q *Queue) enter(w *waiter) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return backend.ErrClosed
	}
	q.waiting = append(q.waiting, w)
	signal(q.arrived)
	return nil
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// leave removes a waiter that gives up. It returns the outcome that the waiter got in the same
// moment.
func (q *Queue) leave(w *waiter, err error) ([]backend.Delivery, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, other := range q.waiting {
		if other == w {
			q.waiting = append(q.waiting[:i], q.waiting[i+1:]...)
			return nil, err
		}
	}
	r := <-w.got
	return r.ds, r.err
}

// InTx returns ErrUnsupported: Redis has no transactions that a caller keeps open.
func (*Queue) InTx(any) (backend.Queue, error) { return nil, backend.ErrUnsupported }

// Close is as in backend.Queue.
func (q *Queue) Close() error {
	q.closing.Do(func() {
		q.mu.Lock()
		q.closed = true
		q.mu.Unlock()
		q.stop()
		if q.wasStarted() {
			q.awaitFetcher()
			q.hub.remove(q)
		}
		if q.onClose != nil {
			q.onClose(q)
		}
	})
	return nil
}

// open returns ErrClosed for a closed handle.
func (q *Queue) open() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return backend.ErrClosed
	}
	return nil
}
