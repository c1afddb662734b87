package sqlite

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/handle"
)

// Backend keeps queues in one file. It is safe for concurrent use.
type Backend struct {
	settings settings
	err      error // of an option; Open reports it

	opening chan struct{} // has an item while a call opens the file

	mu      sync.Mutex
	file    *file // nil before the first Open
	handles map[*handle.Queue]struct{}
	closed  bool
}

var _ backend.Backend = (*Backend)(nil)

type settings struct {
	path string
	sync string // the value of PRAGMA synchronous
	busy time.Duration
}

// An Option changes a setting of [New].
type Option func(*Backend)

// BusyTimeout sets how long a call waits for another process that writes to the file, 1 ms to 10
// min, 10 s by default. A call that waits longer returns backend.ErrUnavailable.
func BusyTimeout(d time.Duration) Option {
	return func(b *Backend) {
		if d < time.Millisecond || d > 10*time.Minute {
			b.err = backend.Invalid("sqlite.BusyTimeout", d, "1ms to 10m")
		}
		b.settings.busy = d
	}
}

// Relaxed has a commit return before the disk has it: PRAGMA synchronous = NORMAL. A crash of the
// process loses nothing then, but a power cut or a crash of the machine may lose the last commits.
// The file stays whole.
func Relaxed() Option { return func(b *Backend) { b.settings.sync = "NORMAL" } }

// New returns a backend on the file of that path. The first Open makes the file, where there is
// none, and its tables, and reports an option out of range. Other processes may use the file at the
// same time.
func New(path string, opts ...Option) *Backend {
	b := &Backend{
		settings: settings{sync: "FULL", busy: 10 * time.Second},
		handles:  make(map[*handle.Queue]struct{}),
		opening:  make(chan struct{}, 1),
	}
	b.settings.path, b.err = filepath.Abs(path)
	if path == "" {
		b.err = backend.Invalid("sqlite file", path, "a path")
	}
	for _, set := range opts {
		if set == nil {
			b.err = backend.Invalid("sqlite option", "nil", "the result of BusyTimeout or Relaxed")
			continue
		}
		set(b)
	}
	return b
}

// Traits returns the strictest promises. Another process's nearer message is noticed within Sweep.
func (*Backend) Traits() backend.Traits {
	return backend.Traits{Name: "sqlite", Sweep: sweep, Calls: backend.NoRoundTrip} // its writer combines them
}

const (
	sweep = 50 * time.Millisecond // the watcher's interval, and the looks of many handles

	// maxSleep bounds how long a jump of the wall clock goes unnoticed. Timers do not notice it.
	maxSleep = time.Minute
)

// Open returns a handle on the queue of that name. The first Open opens the file.
func (b *Backend) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	f, err := b.open(ctx)
	if err != nil {
		return nil, err
	}
	number, err := f.number(ctx, name)
	if err != nil {
		return nil, err
	}
	clock := o.Clock
	if clock == nil {
		clock = clockwork.NewRealClock()
	}
	m := &messages{file: f, name: name, queue: number, clock: clock}
	q := handle.New(handle.Source{Messages: m, Name: name, Claim: m.claim, Within: m.InTx, Count: m.addActivity, Clock: clock}, &f.hub, o.Logger, b.forget)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, backend.ErrClosed
	}
	b.handles[q] = struct{}{}
	return q, nil
}

// open returns the file, which the first call opens. That may take long: the others wait for it, and
// Close does not.
func (b *Backend) open(ctx context.Context) (*file, error) {
	if f, err := b.opened(ctx, nil); f != nil || err != nil {
		return f, err
	}
	select {
	case b.opening <- struct{}{}:
		defer func() { <-b.opening }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if f, err := b.opened(ctx, nil); f != nil || err != nil {
		return f, err
	}
	f, err := openFile(ctx, b.settings)
	if err != nil {
		return nil, err
	}
	if _, err := b.opened(context.WithoutCancel(ctx), f); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// opened returns the file, nil if there is none. It keeps another file, unless that is nil.
func (b *Backend) opened(ctx context.Context, another *file) (*file, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if b.closed {
		return nil, backend.ErrClosed
	}
	if another != nil {
		b.file = another
	}
	return b.file, b.err
}

func (b *Backend) forget(q *handle.Queue) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.handles, q)
}

// Close closes all queues and the file. Messages stay in it.
func (b *Backend) Close() error {
	b.mu.Lock()
	open, f := b.handles, b.file
	b.closed, b.handles, b.file = true, nil, nil
	b.mu.Unlock()
	handle.CloseAll(maps.Keys(open))
	if f == nil {
		return nil
	}
	return f.close()
}
