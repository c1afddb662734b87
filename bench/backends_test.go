// Package bench measures what delayq promises about speed, over every backend.
//
//	go test -bench . ./bench
//
// One backend: -bench '/backend=memory'. Two versions are compared with benchstat, two
// backends with benchstat -col /backend. A benchmark fails when a promise is broken, an early
// or a lost message, and never because the machine is slow; the goals are in the comments.
package bench

import (
	"context"
	"log/slog"
	"testing"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/memory"
)

// A target is a backend to measure. A new one joins by an entry in targets.
type target struct {
	name string

	// open returns an empty store that nobody else uses; it cleans up after itself.
	open func(testing.TB) backend.Backend

	// virtual stores run on the clock of delayq.WithClock.
	virtual bool

	// inProcess stores hold their messages in this process's heap.
	inProcess bool
}

var targets = []target{
	{name: "memory", open: openMemory, virtual: true, inProcess: true},
}

func openMemory(testing.TB) backend.Backend { return memory.New() }

// overTargets runs a benchmark over each backend.
func overTargets(b *testing.B, run func(*testing.B, target)) {
	for _, t := range targets {
		b.Run("backend="+t.name, func(b *testing.B) { run(b, t) })
	}
}

// queue opens a queue that is closed when the benchmark ends.
func (t target) queue(b *testing.B, opts ...delayq.Option) delayq.Queue {
	b.Helper()
	store := t.open(b)
	opts = append(opts, delayq.WithBackend(store), delayq.WithLogger(slog.New(slog.DiscardHandler)))
	q, err := delayq.New(context.Background(), "bench", opts...)
	must(b, err)
	b.Cleanup(func() {
		must(b, q.Close())
		must(b, store.Close())
	})
	return q
}
