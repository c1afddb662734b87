package broken

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delayq/delayq/backend"
)

var raceFaults = []Fault{
	{Name: "loses a message when two batches meet", Rule: "batches-at-once", wrap: func(q *queue) backend.Queue { return &overwriter{queue: q, commons: sharedBy(q)} }},
	{Name: "counts a message twice while it is settled", Rule: "clients-at-once", wrap: func(q *queue) backend.Queue { return &doubleCounter{queue: q} }},
	{Name: "counts an attempt for a Receive that ends beside another", Rule: "wake-up-races", wrap: func(q *queue) backend.Queue { return &overcounter{queue: q, commons: sharedBy(q)} }},
	{Name: "keeps the wake-up of a handle that closes", Rule: "wake-up-races", wrap: func(q *queue) backend.Queue {
		return &keeper{queue: q, commons: sharedBy(q), closed: make(chan struct{})}
	}},
	{Name: "wakes one worker for a batch", Rule: "wake-up-of-batch", wrap: func(q *queue) backend.Queue { return newSoleWaker(q) }},
	{Name: "does not hear that a lease ends sooner", Rule: "wake-up-by-lease", wrap: func(q *queue) backend.Queue { return &sluggish{q} }},
	{Name: "sleeps until the head that it knew, for years", Rule: "wake-up-after-long", wrap: func(q *queue) backend.Queue { return &dreamer{q} }},
	{Name: "leaves a goroutine when it is woken and closed at once", Rule: "close-race", wrap: func(q *queue) backend.Queue { return &straggler{queue: q} }},
	{Name: "goes on receiving after Close has returned", Rule: "close-takes-nothing", wrap: func(q *queue) backend.Queue { return &lateCloser{queue: q} }},
}

// commons is what the handles on one queue have in common.
type commons struct {
	pushing, waiting, extra atomic.Int64
	turn                    chan struct{}
}

var sharings sync.Map

func sharedBy(q *queue) *commons {
	type key struct {
		b    backend.Backend
		name string
	}
	fresh := &commons{turn: make(chan struct{}, 1)}
	fresh.turn <- struct{}{}
	s, _ := sharings.LoadOrStore(key{q.backend, q.name}, fresh)
	return s.(*commons)
}

// overwriter writes where another batch is writing.
type overwriter struct {
	*queue
	*commons
}

func (q *overwriter) Schedule(ctx context.Context, ms []backend.Message) []error {
	defer q.pushing.Add(-1)
	others := q.pushing.Add(1) > 1
	if <-time.After(100 * time.Microsecond); others {
		ms = ms[:len(ms)-1]
	}
	q.Queue.Schedule(ctx, ms)
	return nil
}

// doubleCounter has a message in two places while it is settled.
type doubleCounter struct {
	*queue
	settling atomic.Int64
}

func (q *doubleCounter) Stats(ctx context.Context) (backend.Stats, error) {
	s, err := q.Queue.Stats(ctx)
	s.InFlight += q.settling.Load()
	return s, err
}

func (q *doubleCounter) Ack(ctx context.Context, ls []backend.Lease) []error {
	q.settling.Add(int64(len(ls)))
	<-time.After(100 * time.Microsecond)
	q.settling.Add(-int64(len(ls)))
	return q.Queue.Ack(ctx, ls)
}

type overcounter struct {
	*queue
	*commons
}

func (q *overcounter) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	q.waiting.Add(1)
	ds, err := q.Queue.Receive(ctx, limit, lease)
	if others := q.waiting.Add(-1); others > 0 && errors.Is(err, context.Canceled) {
		q.extra.Store(1)
	}
	for i := range ds {
		ds[i].Attempt += int(q.extra.Swap(0))
	}
	return ds, err
}

// keeper lets one worker wait for the store, the others for their turn. A handle that closes does not pass it on.
type keeper struct {
	*queue
	*commons
	closed chan struct{}
	once   sync.Once
}

func (q *keeper) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	select {
	case <-q.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-q.closed:
		return nil, backend.ErrClosed
	}
	ds, err := q.Queue.Receive(ctx, limit, lease)
	if !errors.Is(err, backend.ErrClosed) {
		q.turn <- struct{}{}
	}
	return ds, err
}

func (q *keeper) Close() error {
	q.once.Do(func() { close(q.closed) })
	return q.Queue.Close()
}

// straggler has a moment between the two parts of Close.
type straggler struct {
	*queue
	closing atomic.Bool
}

func (q *straggler) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	ds, err := q.Queue.Receive(ctx, limit, lease)
	if len(ds) > 0 && q.closing.Load() {
		go func() { <-time.After(5 * time.Second) }()
	}
	return ds, err
}

func (q *straggler) Close() error {
	q.closing.Store(true)
	<-time.After(time.Millisecond)
	return q.Queue.Close()
}

// lateCloser closes in the background.
type lateCloser struct {
	*queue
	once sync.Once
}

func (q *lateCloser) Close() error {
	q.once.Do(func() {
		go func() {
			<-time.After(100 * time.Millisecond)
			_ = q.Queue.Close()
		}()
	})
	return nil
}

// Unlocked returns a fault that no check can see: a count that Stats reads without its lock. It is
// caught under the race detector, by the check of its rule, and is not one of [Faults].
func Unlocked() Fault {
	return Fault{Name: "reads a count in Stats without its lock", Rule: "clients-at-once", wrap: func(q *queue) backend.Queue { return &unlocked{queue: q} }}
}

type unlocked struct {
	*queue
	mu     sync.Mutex
	pushes int64
}

func (q *unlocked) Schedule(ctx context.Context, ms []backend.Message) []error {
	defer func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.pushes++
	}()
	return q.Queue.Schedule(ctx, ms)
}

func (q *unlocked) Stats(ctx context.Context) (backend.Stats, error) {
	s, err := q.Queue.Stats(ctx)
	s.Scheduled += min(q.pushes, 0)
	return s, err
}
