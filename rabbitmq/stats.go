package rabbitmq

import (
	"context"
	"errors"
	"time"

	"github.com/delayq/delayq/backend"
)

// countWithin bounds how long Stats waits for the management API, and for a process that reads the
// dead letters.
const countWithin = time.Second

// Stats is as in backend.Queue. Ready messages and dead letters are counted by AMQP. A message on
// its way to a worker is not ready. Those in flight are counted by the management API, as it saw
// them up to ten seconds ago, if [Management] names its address and it replies within a second.
// Dead letters are unknown while a process reads them for longer than that. Scheduled messages of
// all queues wait together, and are never counted.
func (q *queue) Stats(ctx context.Context) (backend.Stats, error) {
	if err := q.open(ctx); err != nil {
		return backend.Stats{}, err
	}
	return within(ctx, func() (backend.Stats, error) { return q.count(ctx) })
}

func (q *queue) count(ctx context.Context) (backend.Stats, error) {
	unacked := make(chan int64, 1)
	go func() { unacked <- q.b.unacked(ctx, q.names.queue(q.name)) }()
	st := backend.Stats{Scheduled: backend.Unknown, OldestReady: backend.Unknown, Activity: backend.UnknownActivity}
	for i := range st.Due {
		st.Due[i] = backend.Unknown
	}
	s, err := q.sub.session(ctx)
	if err != nil {
		return backend.Stats{}, err
	}
	ready, err := length(s.conn.Connection, q.names.queue(q.name))
	if err != nil {
		return backend.Stats{}, err
	}
	st.Ready = int64(ready)
	if st.Dead, err = q.deadNow(ctx, s); err != nil {
		return backend.Stats{}, err
	}
	st.InFlight = <-unacked
	return st, nil
}

// deadNow counts the dead letters. It holds the lock of those who read them: the letters that are
// being read are not in the queue.
func (q *queue) deadNow(ctx context.Context, s *session) (int64, error) {
	soon, cancel := context.WithTimeout(ctx, countWithin)
	defer cancel()
	unlock, err := q.b.dead.lock(soon, q.name)
	if err == nil {
		defer unlock()
		var release func()
		if release, err = q.lockDead(soon, s); err == nil {
			defer release()
			n, err := length(s.conn.Connection, q.names.dead(q.name))
			return int64(n), err
		}
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return backend.Unknown, nil
	}
	return 0, err
}
