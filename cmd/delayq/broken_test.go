package main

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/memory"
)

// The queues here are queues of the memory backend with one fault each. Their schemes are "broken-"
// and the fault.
func init() {
	for fault, wrap := range map[string]func(backend.Queue) backend.Queue{
		"broken-early":     func(q backend.Queue) backend.Queue { return earlyQueue{q} },
		"broken-lossy":     func(q backend.Queue) backend.Queue { return lossyQueue{q} },
		"broken-twice":     func(q backend.Queue) backend.Queue { return &twiceQueue{Queue: q, seen: make(map[string]bool)} },
		"broken-uncancel":  func(q backend.Queue) backend.Queue { return uncancelQueue{q} },
		"broken-altering":  func(q backend.Queue) backend.Queue { return alteringQueue{q} },
		"broken-forgetful": func(q backend.Queue) backend.Queue { return forgetfulQueue{q} },
		"broken-dead":      func(q backend.Queue) backend.Queue { return deadQueue{q} },
		"broken-late":      func(q backend.Queue) backend.Queue { return &lateQueue{Queue: q} },
	} {
		backend.Register(fault, opener(&wrapped{Backend: memory.New(), wrap: wrap}))
	}
	backend.Register("plain", opener(coreOnly{memory.New()}))
}

// opener opens a new store at the first time and that store ever after, as a server would.
func opener(b backend.Backend) backend.Opener {
	return func(_ context.Context, u *url.URL) (backend.Backend, string, error) {
		return b, strings.TrimPrefix(u.Path, "/"), nil
	}
}

type wrapped struct {
	*memory.Backend
	wrap func(backend.Queue) backend.Queue
}

func (b *wrapped) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	q, err := b.Backend.Open(ctx, name, o)
	if err != nil {
		return nil, err
	}
	return b.wrap(q), nil
}

func (*wrapped) Close() error { return nil }

type earlyQueue struct{ backend.Queue }

func (q earlyQueue) Schedule(ctx context.Context, ms []backend.Message) []error {
	for i := range ms {
		ms[i].Delay /= 2
	}
	return q.Queue.Schedule(ctx, ms)
}

type lossyQueue struct{ backend.Queue }

func (q lossyQueue) Schedule(ctx context.Context, ms []backend.Message) []error {
	if id := ms[0].ID; strings.HasSuffix(id, "order-04") || strings.HasSuffix(id, "shipment") {
		return nil
	}
	return q.Queue.Schedule(ctx, ms)
}

// twiceQueue takes the first ack of a message for a nack.
type twiceQueue struct {
	backend.Queue
	mu   sync.Mutex
	seen map[string]bool
}

func (q *twiceQueue) Ack(ctx context.Context, ls []backend.Lease) []error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if id := ls[0].ID; !q.seen[id] {
		q.seen[id] = true
		return q.Nack(ctx, []backend.Return{{Lease: ls[0]}})
	}
	return q.Queue.Ack(ctx, ls)
}

type uncancelQueue struct{ backend.Queue }

func (uncancelQueue) Cancel(context.Context, []string) []error { return nil }

type alteringQueue struct{ backend.Queue }

func (q alteringQueue) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	ds, err := q.Queue.Receive(ctx, limit, lease)
	for i := range ds {
		ds[i].Body = append(ds[i].Body, '!')
	}
	return ds, err
}

type forgetfulQueue struct{ backend.Queue }

func (forgetfulQueue) Ack(context.Context, []backend.Lease) []error { return nil }

// deadQueue drops dead letters.
type deadQueue struct{ backend.Queue }

func (q deadQueue) Dead(ctx context.Context, bs []backend.DeadLetterRequest) []error {
	return q.Ack(ctx, []backend.Lease{bs[0].Lease})
}

// lateQueue stores a review of the third scene when the fourth pushes its message. Late is not broken.
type lateQueue struct {
	backend.Queue
	mu   sync.Mutex
	held []backend.Message
}

func (q *lateQueue) Schedule(ctx context.Context, ms []backend.Message) []error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch id := ms[0].ID; {
	case strings.HasSuffix(id, "review-03"):
		q.held = slices.Clone(ms)
		return make([]error, len(ms))
	case strings.HasSuffix(id, "shipment"):
		q.held[0].Delay = 0
		if err := q.Queue.Schedule(ctx, q.held); len(err) > 0 && err[0] != nil {
			return err
		}
	}
	return q.Queue.Schedule(ctx, ms)
}

// coreOnly has no fault; it declares lacking every feature that is a method.
type coreOnly struct{ *memory.Backend }

func (p coreOnly) Traits() backend.Traits {
	t := p.Backend.Traits()
	for _, f := range backend.Features() {
		if len(f.Verbs()) > 0 {
			t.Lacks = t.Lacks.With(f)
		}
	}
	return t
}

func (coreOnly) Close() error { return nil }
