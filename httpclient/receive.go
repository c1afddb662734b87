package httpclient

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/wire"
)

// A poll is one receive on the server. It may outlast the call of Receive that began it.
type poll struct {
	key  string
	done chan struct{} // closed when the rest is set
	ds   []backend.Delivery
	err  error
}

// Receive is as in backend.Queue.
func (q *queue) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	var repeats backoff
	for {
		if err := q.open(ctx); err != nil {
			return nil, err
		}
		p, began := &poll{key: rand.Text(), done: make(chan struct{})}, time.Now()
		if !q.begin(p, limit, lease) {
			return nil, backend.ErrClosed
		}
		select {
		case <-p.done:
			q.polls.Done()
			if p.err != nil || len(p.ds) > 0 {
				return p.ds, p.err
			}
			q.rest(ctx, repeats.after(time.Since(began)))
		case <-ctx.Done():
			q.abandon(p)
			return nil, ctx.Err()
		case <-q.closing.Done():
			q.abandon(p) // and Close waits for the rest
			return nil, backend.ErrClosed
		}
	}
}

// rest waits until a pause, ctx or the handle ends.
func (q *queue) rest(ctx context.Context, pause time.Duration) {
	if pause == 0 {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(q.closing, cancel)()
	sleep(ctx, pause)
}

// begin starts a poll, unless the handle is closed. Two have to end before Close returns: the poll,
// and the call that gets its messages or gives them back.
func (q *queue) begin(p *poll, limit int, lease time.Duration) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closing.Err() != nil {
		return false
	}
	q.polls.Add(1)
	q.polls.Go(func() { q.run(p, limit, lease) })
	return true
}

// run has a context of its own: messages that come after the end of the caller's are given back.
func (q *queue) run(p *poll, limit int, lease time.Duration) {
	defer close(p.done)
	ctx, cancel := context.WithTimeout(context.Background(), q.b.wait+q.b.timeout)
	defer cancel()
	asked := wire.Receive{
		Limit: min(limit, q.b.store.Batch), LeaseFor: wire.Duration(lease), Wait: wire.Duration(q.b.wait), KeepExpired: true,
	}
	var reply wire.Received
	if p.err = q.b.postKeyed(ctx, q.path+"receive", p.key, asked, &reply); p.err != nil {
		return
	}
	ds := make([]backend.Delivery, len(reply.Messages))
	for i := range ds {
		if ds[i], p.err = reply.Messages[i].Read(); p.err != nil {
			return
		}
	}
	p.ds = ds
}

const (
	// Close waits that long for the ends of polls whose callers have gone. What comes later is given
	// back all the same.
	endWithin = 5 * time.Second
	// The caller waits for that long: when it returns, the server takes no message for it any more,
	// unless the network is slow.
	endSoon = 40 * time.Millisecond
)

// abandon ends a poll on the server. What it was given meanwhile goes back.
func (q *queue) abandon(p *poll) {
	ended := make(chan struct{})
	go func() {
		defer q.polls.Done()
		defer close(ended)
		select {
		case <-p.done: // it came in the same moment
		default:
			if err := q.b.post(context.Background(), q.path+"receive/end", wire.EndReceive{Key: p.key}, &wire.Done{}); err != nil {
				q.log.Debug("delayq: ending a receive failed; the server ends it in time", "err", err)
			}
		}
		<-p.done // which has a bound of its own
		q.release(p.ds)
	}()
	soon := time.NewTimer(endSoon)
	defer soon.Stop()
	select {
	case <-ended:
	case <-soon.C:
	}
}

// release gives messages back. If that fails, their leases end in time.
func (q *queue) release(ds []backend.Delivery) {
	if len(ds) == 0 {
		return
	}
	ls := make([]backend.Lease, len(ds))
	for i, d := range ds {
		ls[i] = d.Lease()
	}
	if err := q.b.post(context.Background(), q.path+"release", wire.Leases{Leases: leases(ls)}, &wire.Results{}); err != nil {
		q.log.Warn("delayq: giving messages back failed; they return when their leases end", "messages", len(ds), "err", err)
	}
}

// Close is as in backend.Queue.
func (q *queue) Close() error {
	q.once.Do(func() {
		q.mu.Lock()
		q.close()
		q.mu.Unlock()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			q.polls.Wait()
		}()
		late := time.NewTimer(endWithin)
		defer late.Stop()
		select {
		case <-ended:
		case <-late.C:
		}
		q.b.forget(q)
	})
	return nil
}
