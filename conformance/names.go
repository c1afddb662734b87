package conformance

import (
	"context"
	"sync"
	"time"

	"github.com/delayq/delayq/backend"
)

// The checks name the messages that they push. Where the store makes the ids, a translator stands
// between the two: the checks go on speaking of their names, the store hears its own ids.

// names is the translator's table of one queue, for all handles on it.
type names struct {
	pushing sync.RWMutex // read-locked while a Schedule runs

	mu       sync.Mutex
	ids      map[string]string // the store's, by name
	names    map[string]string // by the store's id
	doubtful map[string]string // names of messages whose Schedule failed, by body
}

func newNames() *names {
	return &names{ids: make(map[string]string), names: make(map[string]string), doubtful: make(map[string]string)}
}

// id returns the store's id of a message; a name that nobody pushed is passed on as it is.
func (n *names) id(name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if id, ok := n.ids[name]; ok {
		return id
	}
	return name
}

// name returns the name of a message that the store handed out; an id that nobody was told is passed
// on as it is. A hand-out may be faster than the outcome of its Schedule: then it waits for that.
func (n *names) name(id string, body []byte) string {
	if name, ok := n.known(id); ok {
		return name
	}
	n.pushing.Lock()
	defer n.pushing.Unlock()
	if name, ok := n.known(id); ok {
		return name
	}
	return n.resolve(id, body)
}

func (n *names) known(id string) (name string, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	name, ok = n.names[id]
	return name, ok
}

// resolve recognizes a message by its body when its Schedule was broken off, so that nobody was told
// its id, and yet it was stored. That explains one message and not a second one.
func (n *names) resolve(id string, body []byte) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	name, ok := n.doubtful[string(body)]
	if !ok {
		return id
	}
	delete(n.doubtful, string(body))
	n.ids[name], n.names[id] = id, name
	return name
}

// told notes what Schedule said of a message.
func (n *names) told(m backend.Message, id string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil {
		n.doubtful[string(m.Body)] = m.ID
		return
	}
	n.ids[m.ID], n.names[id] = id, m.ID
}

// givenID is the id that every message is pushed with. A store that makes ids takes no notice.
const givenID = "given"

// translator is a queue whose ids are names. Its capabilities are nil where the queue has them not.
type translator struct {
	backend.Queue
	*names
	cancel  backend.Canceler
	move    backend.Rescheduler
	inspect backend.Inspector
	dead    backend.DeadLetters
	peek    backend.Peeker
	purge   backend.Purger
}

// translated returns the queue with names for ids, and with the same optional interfaces.
func translated(q backend.Queue, n *names) backend.Queue {
	t := &translator{Queue: q, names: n}
	t.cancel, _ = q.(backend.Canceler)
	t.move, _ = q.(backend.Rescheduler)
	t.inspect, _ = q.(backend.Inspector)
	t.dead, _ = q.(backend.DeadLetters)
	t.peek, _ = q.(backend.Peeker)
	t.purge, _ = q.(backend.Purger)
	return t.exposed()
}

func (t *translator) Schedule(ctx context.Context, ms []backend.Message) []error {
	t.pushing.RLock()
	defer t.pushing.RUnlock()
	given := make([]backend.Message, len(ms))
	for i, m := range ms {
		m.ID = givenID
		given[i] = m
	}
	errs := t.Queue.Schedule(ctx, given)
	for i, m := range ms {
		t.told(m, given[i].ID, at(errs, i))
	}
	return errs
}

func (t *translator) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	ds, err := t.Queue.Receive(ctx, limit, lease)
	for i, d := range ds {
		ds[i].ID = t.name(d.ID, d.Body)
	}
	return ds, err
}

func (t *translator) lease(l backend.Lease) backend.Lease {
	return backend.Lease{ID: t.id(l.ID), Token: l.Token}
}

func (t *translator) Ack(ctx context.Context, ls []backend.Lease) []error {
	return t.Queue.Ack(ctx, each(ls, t.lease))
}

func (t *translator) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	return t.Queue.Extend(ctx, each(ls, t.lease), lease)
}

func (t *translator) Nack(ctx context.Context, rs []backend.Return) []error {
	return t.Queue.Nack(ctx, each(rs, func(r backend.Return) backend.Return {
		r.Lease = t.lease(r.Lease)
		return r
	}))
}

func (t *translator) Dead(ctx context.Context, bs []backend.Burial) []error {
	return t.Queue.Dead(ctx, each(bs, func(b backend.Burial) backend.Burial {
		b.Lease = t.lease(b.Lease)
		return b
	}))
}

func each[T, U any](in []T, change func(T) U) []U {
	out := make([]U, len(in))
	for i, v := range in {
		out[i] = change(v)
	}
	return out
}
