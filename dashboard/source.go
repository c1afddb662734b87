package dashboard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

const listLimit = 3 * time.Second // of one source among several

// Source has the queues that a dashboard shows. Its methods are safe for concurrent use.
type Source interface {
	// List returns the names of all queues. Where it can list some only, it returns those and an
	// error, which the page of all queues shows.
	List(ctx context.Context) ([]string, error)

	// Open opens one of them. The dashboard closes it when nobody has looked at it for some
	// minutes. ctx bounds the opening alone.
	Open(ctx context.Context, name string) (delayq.Queue, error)
}

// Queues is a source of open queues, under the names that the dashboard shows. The caller closes
// them, after the handler.
func Queues(queues map[string]delayq.Queue) Source { return fixed(maps.Clone(queues)) }

type fixed map[string]delayq.Queue

func (f fixed) List(context.Context) ([]string, error) { return slices.Sorted(maps.Keys(f)), nil }

func (f fixed) Open(_ context.Context, name string) (delayq.Queue, error) {
	q := f[name]
	if q == nil {
		return nil, fmt.Errorf("no queue %q", name)
	}
	return keptOpen{q}, nil
}

// keptOpen is a queue that its owner closes.
type keptOpen struct{ delayq.Queue }

func (keptOpen) Close() error { return nil }

// Backend is a source of all queues of a backend, as [delayq.Queues] lists them, and of those with
// the names, which may be nil. Where the backend cannot list queues, it has those with the names
// alone. The options are for each queue that the dashboard opens, such as [delayq.WithLogger]. The
// caller closes the backend, after the handler.
func Backend(b backend.Backend, names []string, opts ...delayq.Option) Source {
	return &whole{b, slices.Clone(names), slices.Clone(opts)}
}

type whole struct {
	backend backend.Backend
	names   []string
	opts    []delayq.Option
}

func (w *whole) List(ctx context.Context) ([]string, error) {
	found, err := delayq.Queues(ctx, w.backend)
	if err != nil && (len(w.names) == 0 || !errors.Is(err, delayq.ErrUnsupported)) {
		return nil, err //nolint:wrapcheck // it says all
	}
	found = append(found, w.names...)
	slices.Sort(found)
	return slices.Compact(found), nil
}

func (w *whole) Open(ctx context.Context, name string) (delayq.Queue, error) {
	// The application's retention of dead letters counts, and not one of this handle.
	opts := append([]delayq.Option{delayq.DeadLetterRetention(0, 0), delayq.WithBackend(w.backend)}, w.opts...)
	return delayq.New(ctx, name, opts...) //nolint:wrapcheck // it says all
}

// Join is a source of the queues of several sources. The name of a queue begins with its source's
// key and a slash; the key has none. Sources that fail, or do not reply within three seconds, do not
// keep the others from being shown.
func Join(sources map[string]Source) Source { return joined(maps.Clone(sources)) }

type joined map[string]Source

func (j joined) List(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, listLimit)
	defer cancel()
	keys := slices.Sorted(maps.Keys(j))
	lists, errs := make([][]string, len(keys)), make([]error, len(keys))
	var listing sync.WaitGroup
	for i, key := range keys {
		listing.Go(func() {
			found, err := j[key].List(ctx)
			for _, name := range found {
				lists[i] = append(lists[i], key+"/"+name)
			}
			if err != nil {
				errs[i] = fmt.Errorf("%s: %w", key, err)
			}
		})
	}
	listing.Wait()
	return slices.Concat(lists...), errors.Join(errs...)
}

func (j joined) Open(ctx context.Context, name string) (delayq.Queue, error) {
	key, rest, _ := strings.Cut(name, "/")
	if source := j[key]; source != nil {
		return source.Open(ctx, rest)
	}
	return nil, fmt.Errorf("no queue %q", name)
}
