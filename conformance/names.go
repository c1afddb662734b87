package conformance

import (
	"context"
	"sync"
	"time"

	"github.com/delayq/delayq/backend"
)

// The checks name the messages that they push. Where the store makes the ids, a translator maps the
// names to ids and back.

// names is the table of one queue, for all handles on it.
type names struct {
	pushing sync.RWMutex // read-locked while a Schedule runs

	mu        sync.Mutex
	ids       map[string]string // the store's, by name
	names     map[string]string // by the store's id
	uncertain map[string]string // names of messages whose Schedule failed, by body
}

func newNames() *names {
	return &names{ids: make(map[string]string), names: make(map[string]string), uncertain: make(map[string]string)}
}

// id returns the store's id of a message, or the name itself where it was never pushed.
func (n *names) id(name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if id, ok := n.ids[name]; ok {
		return id
	}
	return name
}

// name returns the name of a message that the store handed out, or the id itself where it is
// unknown. A delivery may be faster than the return of its Schedule: name then waits for that.
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

// resolve recognizes a message by its body when its Schedule failed and yet stored it, so that its
// id is unknown. That explains one message and not a second one.
func (n *names) resolve(id string, body []byte) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	name, ok := n.uncertain[string(body)]
	if !ok {
		return id
	}
	delete(n.uncertain, string(body))
	n.ids[name], n.names[id] = id, name
	return name
}

// told notes the outcome of a message in a Schedule.
func (n *names) told(m backend.Message, id string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil {
		n.uncertain[string(m.Body)] = m.ID
		return
	}
	n.ids[m.ID], n.names[id] = id, m.ID
}

// givenID is the id that every message is pushed with. A store that makes ids ignores it.
const givenID = "given"

// translator is a queue whose ids are names.
type translator struct {
	backend.Queue
	*names
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

func (t *translator) Dead(ctx context.Context, bs []backend.DeadLetterRequest) []error {
	return t.Queue.Dead(ctx, each(bs, func(b backend.DeadLetterRequest) backend.DeadLetterRequest {
		b.Lease = t.lease(b.Lease)
		return b
	}))
}

func (t *translator) Cancel(ctx context.Context, names []string) []error {
	return t.Queue.Cancel(ctx, each(names, t.id))
}

func (t *translator) Reschedule(ctx context.Context, ms []backend.Move) []error {
	return t.Queue.Reschedule(ctx, each(ms, func(m backend.Move) backend.Move {
		m.ID = t.id(m.ID)
		return m
	}))
}

func (t *translator) Get(ctx context.Context, names []string) ([]backend.MessageInfo, []error) {
	ms, errs := t.Queue.Get(ctx, each(names, t.id))
	for i := range ms {
		if ms[i].ID != "" {
			ms[i].ID = names[i]
		}
	}
	return ms, errs
}

func (t *translator) Peek(ctx context.Context, cursor string, limit int) ([]backend.Pending, string, error) {
	ps, next, err := t.Queue.Peek(ctx, cursor, limit)
	for i, p := range ps {
		ps[i].ID = t.name(p.ID, p.Body)
	}
	return ps, next, err
}

func (t *translator) ListDead(ctx context.Context, cursor string, limit int) ([]backend.DeadLetter, string, error) {
	ls, next, err := t.Queue.ListDead(ctx, cursor, limit)
	for i, l := range ls {
		ls[i].ID = t.name(l.ID, l.Body)
	}
	return ls, next, err
}

func (t *translator) ListDeadIDs(ctx context.Context, cursor string, limit int) ([]string, string, error) {
	ids, next, err := t.Queue.ListDeadIDs(ctx, cursor, limit)
	for i, id := range ids {
		if name, ok := t.known(id); ok {
			ids[i] = name
		}
	}
	return ids, next, err
}

func (t *translator) Redrive(ctx context.Context, names []string) []error {
	return t.Queue.Redrive(ctx, each(names, t.id))
}

func (t *translator) DeleteDead(ctx context.Context, names []string) []error {
	return t.Queue.DeleteDead(ctx, each(names, t.id))
}

func each[T, U any](in []T, change func(T) U) []U {
	out := make([]U, len(in))
	for i, v := range in {
		out[i] = change(v)
	}
	return out
}
