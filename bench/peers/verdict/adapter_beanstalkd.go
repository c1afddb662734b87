package verdict

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/beanstalkd/go-beanstalk"

	"github.com/delayq/delayq/backend"
)

// beanstalkdBackend has a connection for each worker, as beanstalkd wants it: a job is settled on the connection that reserved it.
type beanstalkdBackend struct {
	handles
	addr string

	// roundUp has the caller round delays up to whole seconds. The client cuts them.
	roundUp bool
}

// ttr is the time to run of all jobs, the shortest that the protocol knows. Workers touch a job for longer.
const ttr = time.Second

// Traits declare the protocol's whole seconds, ids of the server's making and bodies without headers, and no order but that of priorities.
func (b *beanstalkdBackend) Traits() backend.Traits {
	return backend.Traits{
		Name: "beanstalkd", Resolution: time.Second, MaxDelay: math.MaxUint32 * time.Second,
		Lacks: backend.Lacking(
			backend.Rescheduling, backend.Redriving, backend.Peeking, backend.Getting, backend.Purging, backend.Pausing,
			backend.Ordering, backend.OwnIDs, backend.KeepingHeaders, backend.Deduplicating, backend.Transactions,
			backend.CountingActivity,
		),
	}
}

func (b *beanstalkdBackend) Open(ctx context.Context, name string, _ backend.Options) (backend.Queue, error) {
	return b.add(ctx, func() (backend.Queue, error) {
		q := &beanstalkdQueue{closer: newCloser(), backend: b, tube: "t-" + hex.EncodeToString([]byte(name)), hands: make(map[backend.Token]*reservation)}
		var err error
		q.control, err = q.dial()
		return q, err
	})
}

type beanstalkdQueue struct {
	backend.Unsupported
	closer
	backend *beanstalkdBackend
	tube    string
	control *beanstalk.Conn // for what no worker does

	mu    sync.Mutex
	idle  []*beanstalk.Conn
	open  []*beanstalk.Conn
	hands map[backend.Token]*reservation
	last  uint64
}

// A reservation is a job in a worker's hands.
type reservation struct {
	conn *beanstalk.Conn
	id   uint64
	*keeper
}

var _ backend.Queue = (*beanstalkdQueue)(nil)

func (q *beanstalkdQueue) dial() (*beanstalk.Conn, error) {
	c, err := beanstalk.Dial("tcp", q.backend.addr)
	if err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open = append(q.open, c)
	return c, nil
}

func (q *beanstalkdQueue) Schedule(ctx context.Context, ms []backend.Message) []error {
	i := -1
	return each(ctx, &q.closer, ms, func(m backend.Message) error {
		i++
		if len(m.Headers) > 0 {
			return lacks("beanstalkd", "headers")
		}
		body := m.Body
		if body == nil {
			body = []byte{} // the client sends no job at all for nil
		}
		id, err := beanstalk.NewTube(q.control, q.tube).Put(body, 0, q.delay(m), ttr)
		if err == nil {
			ms[i].ID = strconv.FormatUint(id, 10)
		}
		return err
	})
}

func (q *beanstalkdQueue) delay(m backend.Message) time.Duration {
	d := m.Delay
	if !m.Due.IsZero() {
		d = max(0, time.Until(m.Due))
	}
	return q.rounded(d)
}

func (q *beanstalkdQueue) rounded(d time.Duration) time.Duration {
	if rest := d % time.Second; q.backend.roundUp && rest > 0 {
		return d + time.Second - rest
	}
	return d
}

// worker returns a connection that has no job.
func (q *beanstalkdQueue) worker() (*beanstalk.Conn, error) {
	q.mu.Lock()
	if n := len(q.idle); n > 0 {
		c := q.idle[n-1]
		q.idle = q.idle[:n-1]
		q.mu.Unlock()
		return c, nil
	}
	q.mu.Unlock()
	return q.dial()
}

// Receive reserves one job. Nothing but the end of the connection ends the wait early.
func (q *beanstalkdQueue) Receive(ctx context.Context, _ int, lease time.Duration) ([]backend.Delivery, error) {
	if err := q.ready(ctx); err != nil {
		return nil, err
	}
	c, err := q.worker()
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	id, body, err := beanstalk.NewTubeSet(c, q.tube).Reserve(24 * time.Hour)
	if !stop() || err != nil {
		_ = c.Close()
		if err := q.ready(ctx); err != nil {
			return nil, err
		}
		return nil, err
	}
	d, err := q.take(c, id, body, lease)
	if err != nil {
		return nil, err
	}
	return []backend.Delivery{d}, nil
}

func (q *beanstalkdQueue) take(c *beanstalk.Conn, id uint64, body []byte, lease time.Duration) (backend.Delivery, error) {
	stats, err := c.StatsJob(id)
	if err != nil {
		return backend.Delivery{}, err
	}
	attempt, err := strconv.Atoi(stats["reserves"])
	if err != nil {
		return backend.Delivery{}, fmt.Errorf("reading the reservations of job %d: %w", id, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last++
	d := backend.Delivery{ID: strconv.FormatUint(id, 10), Body: body, Attempt: attempt, Token: backend.Token{Lo: q.last}, Until: time.Now().Add(max(lease, ttr))}
	q.hands[d.Token] = &reservation{c, id, keep(ttr, lease, func() error { return c.Touch(id) })}
	return d, nil
}

// settle says a word on the connection that has the job, or, once that was said, on one that has not.
func (q *beanstalkdQueue) settle(l backend.Lease, say func(c *beanstalk.Conn, id uint64) error) error {
	q.mu.Lock()
	r := q.hands[l.Token]
	q.mu.Unlock()
	if r == nil || strconv.FormatUint(r.id, 10) != l.ID {
		return backend.ErrLeaseLost
	}
	r.stop()
	q.mu.Lock()
	c := r.conn
	if r.conn = nil; c == nil {
		c = q.control
	}
	q.mu.Unlock()
	err := say(c, r.id)
	if c != q.control {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.idle = append(q.idle, c)
	}
	return lost(err)
}

func lost(err error) error {
	if errors.Is(err, beanstalk.ErrNotFound) {
		return backend.ErrLeaseLost
	}
	return err
}

func (q *beanstalkdQueue) Ack(ctx context.Context, ls []backend.Lease) []error {
	return each(ctx, &q.closer, ls, func(l backend.Lease) error { return q.settle(l, (*beanstalk.Conn).Delete) })
}

// Nack is release, also for a message that nobody has touched: there is no other word.
func (q *beanstalkdQueue) Nack(ctx context.Context, rs []backend.Return) []error {
	return each(ctx, &q.closer, rs, func(r backend.Return) error {
		return q.settle(r.Lease, func(c *beanstalk.Conn, id uint64) error { return c.Release(id, 0, q.rounded(r.Delay)) })
	})
}

// Dead is bury, which takes no reason.
func (q *beanstalkdQueue) Dead(ctx context.Context, bs []backend.DeadLetterRequest) []error {
	return each(ctx, &q.closer, bs, func(b backend.DeadLetterRequest) error {
		return q.settle(b.Lease, func(c *beanstalk.Conn, id uint64) error { return c.Bury(id, 0) })
	})
}

// Extend is touch.
func (q *beanstalkdQueue) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	return extends(ctx, &q.closer, ls, func(l backend.Lease) (time.Time, error) {
		q.mu.Lock()
		r := q.hands[l.Token]
		q.mu.Unlock()
		if r == nil || r.conn == nil || strconv.FormatUint(r.id, 10) != l.ID {
			return time.Time{}, backend.ErrLeaseLost
		}
		end, err := r.extend(lease)
		return end, lost(err)
	})
}

// Cancel is delete, and a look at what refuses it.
func (q *beanstalkdQueue) Cancel(ctx context.Context, ids []string) []error {
	return each(ctx, &q.closer, ids, func(name string) error {
		id, err := strconv.ParseUint(name, 10, 64)
		if err != nil {
			return backend.ErrNotFound
		}
		if err = q.control.Delete(id); !errors.Is(err, beanstalk.ErrNotFound) {
			return err
		}
		if _, err = q.control.StatsJob(id); errors.Is(err, beanstalk.ErrNotFound) {
			return backend.ErrNotFound
		}
		return errors.Join(backend.ErrInFlight, err)
	})
}

// Stats are those of the tube.
func (q *beanstalkdQueue) Stats(ctx context.Context) (s backend.Stats, err error) {
	s.Activity = backend.UnknownActivity
	if err := q.ready(ctx); err != nil {
		return s, err
	}
	tube := beanstalk.NewTube(q.control, q.tube)
	stats, err := tube.Stats()
	if errors.Is(err, beanstalk.ErrNotFound) {
		return s, nil // a tube without jobs and workers is none
	}
	for name, n := range map[string]*int64{
		"current-jobs-delayed": &s.Scheduled, "current-jobs-ready": &s.Ready, "current-jobs-reserved": &s.InFlight, "current-jobs-buried": &s.Dead,
	} {
		var bad error
		*n, bad = strconv.ParseInt(stats[name], 10, 64)
		err = errors.Join(err, bad)
	}
	if err == nil && s.Scheduled > 0 {
		s.HeadDue, err = q.headDue(tube)
	}
	return s, err
}

// headDue is told in whole seconds that are left, which are rounded up here.
func (q *beanstalkdQueue) headDue(tube *beanstalk.Tube) (time.Time, error) {
	id, _, err := tube.PeekDelayed()
	if errors.Is(err, beanstalk.ErrNotFound) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	job, err := q.control.StatsJob(id)
	if err != nil {
		return time.Time{}, err
	}
	left, err := strconv.Atoi(job["time-left"])
	return time.Now().Add(time.Duration(left+1) * time.Second), err
}

// Close ends the connections. The server then gives back what they had.
func (q *beanstalkdQueue) Close() error {
	return q.closeOnce(func() error {
		q.mu.Lock()
		open, hands := q.open, q.hands
		q.mu.Unlock()
		for _, c := range open {
			_ = c.Close() // some are closed
		}
		for _, r := range hands {
			r.stop()
		}
		return nil
	})
}
