package schedule_test

import (
	"context"
	"errors"
	"testing"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/queuetest"
)

var (
	silent      = queuetest.Silent
	newQueue    = queuetest.New
	receive     = queuetest.Receive
	stats       = queuetest.Stats
	must        = queuetest.Must
	wantIs      = queuetest.WantIs
	wantInvalid = queuetest.WantInvalid
	eventually  = queuetest.Eventually
	bubble      = queuetest.Bubble
)

type journal = queuetest.Journal

func wantEmpty(t *testing.T, q delayq.Queue) {
	t.Helper()
	if s := stats(t, q); s != (delayq.Stats{}) {
		t.Errorf("stats %+v, want none", s)
	}
}

// lossy is a backend whose pushes fail while down reports true.
type lossy struct {
	backend.Backend
	down func() bool
}

func (l lossy) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	q, err := l.Backend.Open(ctx, name, o)
	return lossyQueue{q, l.down}, err
}

type lossyQueue struct {
	backend.Queue
	down func() bool
}

func (q lossyQueue) Schedule(ctx context.Context, ms []backend.Message) []error {
	if q.down() {
		return backend.FailAll(len(ms), errors.New("the store is away"))
	}
	return q.Queue.Schedule(ctx, ms)
}

// lacking is a backend without some features.
type lacking struct {
	backend.Backend
	features []backend.Feature
}

func (l lacking) Traits() backend.Traits {
	tr := l.Backend.Traits()
	tr.Lacks = tr.Lacks.With(l.features...)
	return tr
}
