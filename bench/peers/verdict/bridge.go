package verdict

import (
	"context"
	"sync"
	"time"

	"github.com/delayq/delayq/backend"
)

// A bridge is for peers that call a handler: it hands the message to who waits in Receive, and the handler waits for what becomes
// of it. Without anybody in Receive the handler waits, as one does that has to wait for anything else.
//
// All handles on one queue share it, as the goroutines of a process share its workers.
type bridge struct {
	arrivals chan *visit
	gone     chan struct{} // closed when the peer's workers have stopped

	mu     sync.Mutex
	visits map[backend.Token]*visit
	last   uint64
}

// A visit is one message in one handler.
type visit struct {
	delivery backend.Delivery
	outcome  chan outcome // holds one
	timer    *time.Timer
}

// An outcome is what a handler is to return, in the words of package backend.
type outcome struct {
	word   word
	delay  time.Duration
	reason string
}

type word int

const (
	done      word = iota
	failed         // to be tried again after the delay
	untouched      // no worker had it
	dead           // with the reason
	expired        // its worker's time is over
	unseen         // the handle closed before anybody received it
	stopped        // the handle closed while a worker had it
)

func newBridge() *bridge {
	return &bridge{arrivals: make(chan *visit), gone: make(chan struct{}), visits: make(map[backend.Token]*visit)}
}

// handle is called in a handler, and returns what that returns.
func (b *bridge) handle(ctx context.Context, d backend.Delivery) outcome {
	v := &visit{delivery: d, outcome: make(chan outcome, 1)}
	select {
	case b.arrivals <- v:
	case <-ctx.Done():
		return outcome{word: unseen}
	case <-b.gone:
		return outcome{word: unseen}
	}
	select {
	case o := <-v.outcome:
		return o
	case <-ctx.Done():
	case <-b.gone:
	}
	return outcome{word: stopped}
}

// receive takes what handlers have, and starts the time of a worker: the handler returns when it is over.
func (b *bridge) receive(ctx context.Context, d *closer, limit int, lease time.Duration) (ds []backend.Delivery, err error) {
	select {
	case v := <-b.arrivals:
		ds = append(ds, b.give(v, lease))
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-d.shut:
		return nil, backend.ErrClosed
	}
	for len(ds) < limit {
		select {
		case v := <-b.arrivals:
			ds = append(ds, b.give(v, lease))
		default:
			return ds, nil
		}
	}
	return ds, nil
}

func (b *bridge) give(v *visit, lease time.Duration) backend.Delivery {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	v.delivery.Token, v.delivery.Until = backend.Token{Lo: b.last}, time.Now().Add(lease)
	token := v.delivery.Token
	b.visits[token] = v
	v.timer = time.AfterFunc(lease, func() { _, _ = b.leave(backend.Lease{ID: v.delivery.ID, Token: token}, outcome{word: expired}) })
	return v.delivery
}

// leave has the handler return. The first one to say so decides.
func (b *bridge) leave(l backend.Lease, o outcome) (*visit, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v := b.visits[l.Token]
	if v == nil || v.delivery.ID != l.ID || o.word != expired && !time.Now().Before(v.delivery.Until) {
		return nil, backend.ErrLeaseLost // the timer may be late
	}
	delete(b.visits, l.Token)
	v.timer.Stop()
	v.outcome <- o
	return v, nil
}

// extend moves the end of a worker's time.
func (b *bridge) extend(l backend.Lease, lease time.Duration) (time.Time, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v := b.visits[l.Token]
	if v == nil || v.delivery.ID != l.ID || !v.timer.Stop() {
		return time.Time{}, backend.ErrLeaseLost
	}
	v.timer.Reset(lease)
	v.delivery.Until = time.Now().Add(lease)
	return v.delivery.Until, nil
}

// settles does Ack, Nack and Dead. await waits until the peer has stored what the handler returned.
func settles[T any](ctx context.Context, d *closer, b *bridge, items []T, what func(T) (backend.Lease, outcome), await func(*visit)) []error {
	return each(ctx, d, items, func(item T) error {
		lease, o := what(item)
		v, err := b.leave(lease, o)
		if err == nil {
			await(v)
		}
		return err
	})
}

func acked(l backend.Lease) (backend.Lease, outcome) { return l, outcome{word: done} }

func returned(r backend.Return) (backend.Lease, outcome) {
	if r.Untouched {
		return r.Lease, outcome{word: untouched}
	}
	return r.Lease, outcome{word: failed, delay: r.Delay}
}

func deadLettered(b backend.DeadLetterRequest) (backend.Lease, outcome) {
	return b.Lease, outcome{word: dead, reason: b.Reason}
}
