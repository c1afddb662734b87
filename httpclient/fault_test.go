package httpclient_test

import (
	"context"
	"errors"
	"testing"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/memory"
)

// faulty is a store whose acks end with then after they were done.
type faulty struct {
	backend.Backend
	then func() error
}

func (f faulty) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	q, err := f.Backend.Open(ctx, name, o)
	return faultyQueue{q, f.then}, err
}

type faultyQueue struct {
	backend.Queue
	then func() error
}

func (q faultyQueue) Ack(ctx context.Context, ls []backend.Lease) []error {
	if errs := q.Queue.Ack(ctx, ls); errs != nil {
		return errs
	}
	return backend.FailAll(len(ls), q.then())
}

// Where the store fails after a change, the error does not say that nothing was changed.
func TestServerFailsAfterTheChange(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func() error{
		"panic": func() error { panic("of the store") },
		"error": func() error { return errors.New("of the store") },
	} {
		q := open(t, dial(t, serveOn(t, faulty{memory.New(), then})))
		must(t, errors.Join(q.Schedule(t.Context(), []backend.Message{{ID: "a"}, {ID: "b"}})...))
		ds, err := q.Receive(t.Context(), 2, backend.MaxLease)
		if err != nil || len(ds) != 2 {
			t.Fatalf("%s: got %v, %v", name, ds, err)
		}
		for i, err := range q.Ack(t.Context(), []backend.Lease{ds[0].Lease(), ds[1].Lease()}) {
			if !errors.Is(err, backend.ErrUnavailable) || !errors.Is(err, backend.ErrOutcomeUnknown) {
				t.Errorf("%s: message %d: %v", name, i, err)
			}
		}
	}
}
