package broken

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
)

// Transactional returns a backend that is b, and takes transactions that [Begin] begins on it. They
// keep their changes until the commit, which makes them one after the other: enough for the checks,
// and for no more.
func Transactional(b backend.Backend) backend.Backend { return &transactional{b} }

type transactional struct{ backend.Backend }

func (b *transactional) Traits() backend.Traits {
	t := b.Backend.Traits()
	t.Lacks &^= backend.Lacking(backend.Transactions)
	return t
}

// Unwrap returns the backend beneath, for tests that look into its store.
func (b *transactional) Unwrap() backend.Backend { return b.Backend }

// Queues is as in admin.Lister.
func (b *transactional) Queues(ctx context.Context) ([]string, error) {
	return (&faulty{Backend: b.Backend}).Queues(ctx)
}

func (b *transactional) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	q, err := b.Backend.Open(ctx, name, o)
	if err != nil {
		return nil, err
	}
	clock := o.Clock
	if clock == nil {
		clock = clockwork.NewRealClock()
	}
	return &transactionalQueue{Queue: q, b: b, clock: clock}, nil
}

// Tx is a transaction on a backend of [Transactional].
type Tx struct {
	of      backend.Backend
	mu      sync.Mutex
	over    bool
	pushed  map[string]bool // and not cancelled
	gone    map[string]bool // cancelled
	commits []func() error
	undoes  []func() error
}

// Begin begins a transaction on a backend that Transactional returned.
func Begin(of backend.Backend) *Tx {
	return &Tx{of: of, pushed: make(map[string]bool), gone: make(map[string]bool)}
}

// Commit makes the changes.
func (t *Tx) Commit() error { return t.end(&t.commits) }

// Rollback drops the changes. After the end of the transaction it does nothing.
func (t *Tx) Rollback() error { return t.end(&t.undoes) }

func (t *Tx) end(do *[]func() error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return nil
	}
	t.over = true
	var errs []error
	for _, f := range *do {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

type transactionalQueue struct {
	backend.Queue
	b     *transactional
	clock clockwork.Clock
}

func (q *transactionalQueue) InTx(tx any) (backend.Queue, error) {
	t, ok := tx.(*Tx)
	if !ok {
		return nil, backend.Invalid("transaction", fmt.Sprintf("%T", tx), "one that Begin returned")
	}
	if _, err := q.Queue.Stats(context.Background()); err != nil {
		return nil, err // the queue is closed
	}
	return &txView{q: q, tx: t}, nil
}

type txView struct {
	backend.Unsupported
	q  *transactionalQueue
	tx *Tx
}

// each calls do for each of n messages while the transaction is open.
func (v *txView) each(ctx context.Context, n int, do func(i int) error) []error {
	v.tx.mu.Lock()
	defer v.tx.mu.Unlock()
	_, err := v.q.Queue.Stats(ctx)
	if err == nil && (v.tx.over || v.tx.of != v.q.b) {
		err = backend.Invalid("transaction", v.tx.over, "an open one of the same backend")
	}
	if err != nil {
		return backend.FailAll(n, err)
	}
	return backend.Each(n, do)
}

// state is a message's as the transaction sees it; 0 for none.
func (v *txView) state(ctx context.Context, id string) backend.State {
	switch infos, errs := v.q.Queue.Get(ctx, []string{id}); {
	case v.tx.pushed[id]:
		return backend.StateScheduled
	case v.tx.gone[id] || errs != nil:
		return 0
	default:
		return infos[0].State
	}
}

// atCommit has a call made at the commit.
func (v *txView) atCommit(call func(ctx context.Context) []error) {
	v.tx.commits = append(v.tx.commits, func() error { return errors.Join(call(context.Background())...) })
}

func (v *txView) Schedule(ctx context.Context, ms []backend.Message) []error {
	return v.each(ctx, len(ms), func(i int) error {
		m := ms[i]
		m.Due, m.Delay = m.DueAt(v.q.clock.Now()), 0
		switch s := v.state(ctx, m.ID); {
		case m.Replace && s == backend.StateInFlight:
			return backend.ErrInFlight
		case s != 0 && (!m.Replace || s > backend.StateReady):
			return backend.Duplicate(s)
		}
		v.tx.pushed[m.ID] = true
		v.atCommit(func(ctx context.Context) []error { return v.q.Queue.Schedule(ctx, []backend.Message{m}) })
		return nil
	})
}

// waiting returns the error of a change to a message that does not wait.
func (v *txView) waiting(ctx context.Context, id string) error {
	switch s := v.state(ctx, id); s {
	case backend.StateScheduled, backend.StateReady:
		return nil
	case backend.StateInFlight:
		return backend.ErrInFlight
	default:
		return backend.ErrNotFound
	}
}

func (v *txView) Cancel(ctx context.Context, ids []string) []error {
	return v.each(ctx, len(ids), func(i int) error {
		id := ids[i]
		if err := v.waiting(ctx, id); err != nil {
			return err
		}
		delete(v.tx.pushed, id)
		v.tx.gone[id] = true
		v.atCommit(func(ctx context.Context) []error { return v.q.Queue.Cancel(ctx, []string{id}) })
		return nil
	})
}

func (v *txView) Reschedule(ctx context.Context, ms []backend.Move) []error {
	return v.each(ctx, len(ms), func(i int) error {
		m := ms[i]
		if err := v.waiting(ctx, m.ID); err != nil {
			return err
		}
		m.Due, m.Delay = m.DueAt(v.q.clock.Now()), 0
		v.atCommit(func(ctx context.Context) []error { return v.q.Queue.Reschedule(ctx, []backend.Move{m}) })
		return nil
	})
}

// Ack makes the lease last until the transaction ends.
func (v *txView) Ack(ctx context.Context, ls []backend.Lease) []error {
	return v.each(ctx, len(ls), func(i int) error {
		one := []backend.Lease{ls[i]}
		infos, _ := v.q.Queue.Get(ctx, []string{ls[i].ID})
		if _, errs := v.q.Queue.Extend(ctx, one, backend.MaxLease); errs != nil {
			return errs[0]
		}
		v.tx.undoes = append(v.tx.undoes, func() error {
			left := infos[0].LeaseUntil.Sub(v.q.clock.Now())
			if left <= 0 {
				return errors.Join(v.q.Queue.Nack(context.Background(), []backend.Return{{Lease: ls[i]}})...)
			}
			_, errs := v.q.Queue.Extend(context.Background(), one, left)
			return errors.Join(errs...)
		})
		v.atCommit(func(ctx context.Context) []error { return v.q.Queue.Ack(ctx, one) })
		return nil
	})
}

func (*txView) Close() error { return nil }

var transactionFaults = []Fault{
	{Name: "pushes before the commit of the transaction", Rule: "transaction", breaks: inTx(func(v *faultyView) {
		v.schedule = v.q.Queue.Schedule
	})},
	{Name: "forgets at the commit what the transaction has acknowledged", Rule: "transaction", breaks: inTx(func(v *faultyView) {
		v.ack = func(context.Context, []backend.Lease) []error { return nil }
	})},
	{Name: "keeps what was pushed in a transaction that is rolled back", Rule: "transaction-rollback", breaks: inTx(func(v *faultyView) {
		v.schedule = func(ctx context.Context, ms []backend.Message) []error {
			v.tx.undoes = append(v.tx.undoes, func() error {
				_ = v.q.Queue.Schedule(context.Background(), ms)
				return nil
			})
			return v.txView.Schedule(ctx, ms)
		}
	})},
	{Name: "has a transaction fail after a duplicate", Rule: "transaction-outcomes", breaks: inTx(func(v *faultyView) {
		v.schedule = func(ctx context.Context, ms []backend.Message) []error {
			errs := v.txView.Schedule(ctx, ms)
			if errs != nil {
				_ = v.tx.Rollback()
			}
			return errs
		}
	})},
	{Name: "lets the lease of a message end that an open transaction has acknowledged", Rule: "transaction-lease", breaks: inTx(func(v *faultyView) {
		v.ack = func(_ context.Context, ls []backend.Lease) []error {
			v.atCommit(func(ctx context.Context) []error { return v.q.Queue.Ack(ctx, ls) })
			return nil
		}
	})},
	{Name: "uses a transaction of another store", Rule: "transaction-refused", breaks: inTx(func(v *faultyView) { v.tx.of = v.q.b })},
	{Name: "uses a transaction that is over", Rule: "transaction-refused", breaks: inTx(func(v *faultyView) {
		v.schedule = func(ctx context.Context, ms []backend.Message) []error {
			if v.tx.over {
				return nil
			}
			return v.txView.Schedule(ctx, ms)
		}
	})},
	{Name: "acknowledges in a transaction though the queue is closed", Rule: "transaction-refused", breaks: inTx(func(v *faultyView) {
		v.ack = func(ctx context.Context, ls []backend.Lease) []error {
			if _, err := v.q.Queue.Stats(ctx); err != nil {
				return nil
			}
			return v.txView.Ack(ctx, ls)
		}
	})},
}

// A faultyView is a view whose fault replaces some of the functions of a sound one.
type faultyView struct {
	*txView
	schedule func(context.Context, []backend.Message) []error
	ack      func(context.Context, []backend.Lease) []error
}

func (v *faultyView) Schedule(ctx context.Context, ms []backend.Message) []error {
	return v.schedule(ctx, ms)
}

func (v *faultyView) Ack(ctx context.Context, ls []backend.Lease) []error { return v.ack(ctx, ls) }

// inTx has a fault change each view.
func inTx(change func(*faultyView)) func(*queue) {
	return func(q *queue) {
		q.inTx = func(tx any) (backend.Queue, error) {
			sound, err := q.Queue.InTx(tx)
			if err != nil {
				return nil, err
			}
			v := &faultyView{txView: sound.(*txView)}
			v.schedule, v.ack = v.txView.Schedule, v.txView.Ack
			change(v)
			return v, nil
		}
	}
}
