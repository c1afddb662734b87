package server

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/background"
	"github.com/delayq/delayq/internal/batcher"
	"github.com/delayq/delayq/internal/trim"
)

// An openQueue is a handle that all requests on a queue share.
type openQueue struct {
	backend.Queue
	name    string
	batch   batcher.Store
	mean    mean          // of what was received
	trimmer *trim.Trimmer // nil without a retention
	loops   *background.Loops

	opened chan struct{} // closed when the rest is set
	err    error

	users int           // requests
	used  time.Time     // the last one's end
	left  chan struct{} // closed when the last one ends after Close; nil where there is none
}

// leaveWithin bounds how long Close waits for the requests on a queue: they may give messages back.
const leaveWithin = 5 * time.Second

func (q *openQueue) closeUnused() {
	if q.left != nil {
		late := time.NewTimer(leaveWithin)
		defer late.Stop()
		select {
		case <-q.left:
		case <-late.C:
		}
	}
	q.close()
}

func (q *openQueue) close() {
	q.trimmer.Close()
	q.loops.Close()
	if err := q.Close(); err != nil {
		slog.Default().Debug("delayq: closing a queue failed", "queue", q.name, "err", err)
	}
}

// queues are the open queues of a server.
type queues struct {
	backend backend.Backend
	traits  backend.Traits
	set     *settings

	mu     sync.Mutex
	byName map[string]*openQueue
	closed bool
}

// use returns the queue of a name, opened where it is not open. The caller calls done.
func (qs *queues) use(ctx context.Context, name string) (q *openQueue, done func(), err error) {
	q, first, idle, err := qs.enter(name)
	if idle != nil {
		go idle.close()
	}
	if err != nil {
		return nil, nil, err
	}
	if first {
		qs.open(context.WithoutCancel(ctx), q)
	}
	select {
	case <-q.opened:
	case <-ctx.Done():
		qs.leave(q)
		return nil, nil, ctx.Err()
	}
	if q.err != nil {
		qs.leave(q)
		return nil, nil, q.err
	}
	return q, func() { qs.leave(q) }, nil
}

// enter counts a user. It reports whether it is the first one, who opens the queue, and returns a
// queue that has to be closed instead.
func (qs *queues) enter(name string) (q *openQueue, first bool, idle *openQueue, err error) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if qs.closed {
		return nil, false, nil, backend.ErrClosed
	}
	if q = qs.byName[name]; q != nil {
		q.users++
		return q, false, nil, nil
	}
	if len(qs.byName) >= qs.set.queues {
		if idle = qs.idleLocked(); idle == nil {
			return nil, false, nil, fmt.Errorf("%w: %d queues are open, and no more are allowed", backend.ErrUnavailable, len(qs.byName))
		}
		delete(qs.byName, idle.name)
	}
	q = &openQueue{name: name, users: 1, opened: make(chan struct{})}
	qs.byName[name] = q
	return q, true, idle, nil
}

// idleLocked returns the queue that has been idle for longest, nil for none. One whose leases end
// with its handle is never idle.
func (qs *queues) idleLocked() (idle *openQueue) {
	if qs.traits.Leases == backend.InConnection {
		return nil
	}
	for _, q := range qs.byName {
		if q.users == 0 && (idle == nil || q.used.Before(idle.used)) {
			idle = q
		}
	}
	return idle
}

func (qs *queues) open(ctx context.Context, q *openQueue) {
	defer close(q.opened)
	ctx, cancel := context.WithTimeout(ctx, qs.set.timeout)
	defer cancel()
	q.Queue, q.err = qs.backend.Open(ctx, q.name, backend.Options{Logger: qs.set.log.With("queue", q.name)})
	if q.err != nil {
		qs.mu.Lock()
		delete(qs.byName, q.name)
		qs.mu.Unlock()
		return
	}
	q.batch = batcher.ForStore(q.Queue, qs.set.batch, qs.traits.Calls)
	q.loops = background.NewLoops()
	if qs.traits.Supports(backend.Redriving) {
		q.trimmer = trim.New(trim.Config{Keep: qs.set.retention, Step: q.TrimDead, Run: q.loops.Run, Log: qs.set.log})
	}
	if qs.traits.Supports(backend.Durability) {
		q.trimmer.Begin()
	}
}

func (qs *queues) leave(q *openQueue) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q.users--
	q.used = time.Now()
	if q.users == 0 && q.left != nil {
		close(q.left)
	}
}

func (qs *queues) count() int {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return len(qs.byName)
}

// any returns the name of an open queue, "" for none.
func (qs *queues) any() string {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	for name := range qs.byName {
		return name
	}
	return ""
}

// all calls do for each open queue.
func (qs *queues) all(do func(*openQueue)) {
	qs.mu.Lock()
	open := make([]*openQueue, 0, len(qs.byName))
	for _, q := range qs.byName {
		open = append(open, q)
	}
	qs.mu.Unlock()
	for _, q := range open {
		if <-q.opened; q.err == nil {
			do(q)
		}
	}
}

func (qs *queues) close() {
	qs.mu.Lock()
	if qs.closed {
		qs.mu.Unlock()
		return
	}
	qs.closed = true
	for _, q := range qs.byName {
		if q.users > 0 {
			q.left = make(chan struct{})
		}
	}
	qs.mu.Unlock()
	var closing sync.WaitGroup
	qs.all(func(q *openQueue) { closing.Go(q.closeUnused) })
	closing.Wait()
}
