package handle

import (
	"context"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
)

// Queue is a handle on a queue. All its Receive calls share one fetcher: a goroutine that claims
// for all of them at once, and sleeps until a message is due.
type Queue struct {
	Source
	clock clockwork.Clock // to sleep on
	log   *slog.Logger
	hub   *Hub
	count *counter

	fetching context.Context // ends when Close begins
	stop     context.CancelFunc
	fetched  chan struct{} // closed when the fetcher has ended

	life    sync.Mutex // of the fetcher: held while it is started, and never within mu
	started bool

	mu      sync.Mutex
	closed  bool
	waiting []*waiter
	arrived chan struct{} // holds one when a Receive has begun to wait
	woken   chan struct{} // holds one when soonest has changed
	soonest time.Time     // the first due time of the wake-ups since the last claim
	closing sync.Once
	names   []string // by which the hub wakes it; under the hub's lock
	onClose func(*Queue)
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

// New returns a handle on a source. Close calls onClose, which may be nil, once.
func New(s Source, hub *Hub, log *slog.Logger, onClose func(*Queue)) *Queue {
	q := &Queue{
		Source: s, clock: s.Clock, log: log, hub: hub, onClose: onClose,
		fetched: make(chan struct{}), arrived: make(chan struct{}, 1), woken: make(chan struct{}, 1),
	}
	if q.clock == nil {
		q.clock = clockwork.NewRealClock()
	}
	q.count = newCounter(s.Count, q.clock)
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
	q.Start()
	select {
	case r := <-w.got:
		return r.ds, r.err
	case <-ctx.Done():
		return q.leave(w, ctx.Err())
	case <-q.fetching.Done():
		return q.leave(w, backend.ErrClosed)
	}
}

// Start starts the fetcher, unless it runs or the handle is closed. The first Receive does so too; a
// queue that has to be maintained needs it before that.
func (q *Queue) Start() {
	q.life.Lock()
	defer q.life.Unlock()
	if q.started || q.fetching.Err() != nil {
		return
	}
	q.started = true
	q.hub.add(q)
	fetch := func() {
		defer close(q.fetched)
		q.fetch()
	}
	if q.hub.Go != nil {
		q.hub.Go(fetch)
		return
	}
	go fetch()
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
	if i := slices.Index(q.waiting, w); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		return nil, err
	}
	r := <-w.got
	return r.ds, r.err
}

// closeWithin bounds how long Close waits for the last claim, so that its messages are given back, and
// for the last counts.
// A backend's Close takes up to 5 s, and giving back has its part of them.
const closeWithin = 5*time.Second - giveBackWithin

// Close is as in backend.Queue.
func (q *Queue) Close() error {
	q.closing.Do(func() {
		q.mu.Lock()
		q.closed = true
		q.mu.Unlock()
		q.stop()
		var counted sync.WaitGroup
		counted.Go(q.count.close)
		if q.wasStarted() {
			q.awaitFetcher()
			q.hub.remove(q)
		}
		counted.Wait()
		if q.onClose != nil {
			q.onClose(q)
		}
	})
	return nil
}

func (q *Queue) wasStarted() bool {
	q.life.Lock()
	defer q.life.Unlock()
	return q.started
}

func (q *Queue) awaitFetcher() {
	late := time.NewTimer(closeWithin)
	defer late.Stop()
	select {
	case <-q.fetched:
	case <-late.C:
	}
}

// CloseAll closes handles at the same time, since each may have to wait for the store.
func CloseAll(handles iter.Seq[*Queue]) {
	var closing sync.WaitGroup
	for q := range handles {
		closing.Go(func() { _ = q.Close() })
	}
	closing.Wait()
}

// open returns ErrClosed for a closed handle, and the error of a context that has ended.
func (q *Queue) open(ctx context.Context) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return backend.ErrClosed
	}
	return ctx.Err()
}
