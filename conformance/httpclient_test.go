package conformance_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/conformance"
	"github.com/delayq/delayq/httpclient"
	"github.com/delayq/delayq/memory"
	"github.com/delayq/delayq/server"
	"github.com/delayq/delayq/sqlite"
)

// httpBackends run each check on a server of its own, over connections of the loopback.
func httpBackends(t *testing.T) map[string]conformance.Harness {
	t.Helper()
	dir := t.TempDir()
	var files atomic.Int64
	onMemory := func(opts ...memory.Option) func() (backend.Backend, error) {
		return func() (backend.Backend, error) { return memory.New(opts...), nil }
	}
	onSQLite := func() (backend.Backend, error) {
		path := filepath.Join(dir, strconv.FormatInt(files.Add(1), 10), "delay.db")
		return sqlite.New(path), os.Mkdir(filepath.Dir(path), 0o755)
	}
	h := conformance.Harness{
		New: served(onMemory()), Attach: attachServed, Leftovers: servedLeftovers,
		Limited: served(onMemory(memory.MaxMessages(fewMessages))), LimitedTo: fewMessages,
		Shared:  []string{"net/http.(*conn).serve", "net/http.(*connReader).backgroundRead", "net/http.(*Server).Serve", "net/http.(*persistConn).readLoop", "net/http.(*persistConn).writeLoop"},
		Virtual: true, Quiet: 20 * time.Millisecond, // longer than a request takes
	}
	realtime := h
	realtime.New, realtime.Limited = served(onSQLite), nil
	realtime.Virtual, realtime.Quiet, realtime.Tick = false, 0, 400*time.Millisecond // each call may wait for the disk
	return map[string]conformance.Harness{"httpclient": h, "httpclient-realtime": realtime}
}

// A clockSetter has the server's store run on the clock of the suite, which no client can give it.
type clockSetter struct {
	mu    sync.Mutex
	clock clockwork.Clock
}

func (c *clockSetter) set(clock clockwork.Clock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if clock != nil {
		c.clock = clock
	}
}

func (c *clockSetter) get() clockwork.Clock {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clock
}

// A clockedStore opens queues on that clock.
type clockedStore struct {
	backend.Backend
	clock *clockSetter
}

func (s clockedStore) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	o.Clock = s.clock.get()
	return s.Backend.Open(ctx, name, o)
}

// Traits claim durability: a store in the server's memory outlives its clients. It also tells the
// suite that a call costs a round trip.
func (s clockedStore) Traits() backend.Traits {
	t := s.Backend.Traits()
	t.Lacks &^= backend.Lacking(backend.Durability)
	return t
}

func (s clockedStore) Queues(ctx context.Context) ([]string, error) {
	return s.Backend.(interface {
		Queues(ctx context.Context) ([]string, error)
	}).Queues(ctx)
}

// A clockedClient passes the clock on behind the server's back.
type clockedClient struct {
	*httpclient.Backend
	clock *clockSetter
	url   string
	store backend.Backend
}

func (c *clockedClient) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	c.clock.set(o.Clock)
	o.Clock = nil
	return c.Backend.Open(ctx, name, o)
}

func served(newStore func() (backend.Backend, error)) func(context.Context) (backend.Backend, func(), error) {
	return func(ctx context.Context) (backend.Backend, func(), error) {
		store, err := newStore()
		if err != nil {
			return nil, nil, err
		}
		clock := new(clockSetter)
		s, err := server.New(clockedStore{store, clock}, server.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			return nil, nil, err
		}
		h := httptest.NewServer(s)
		cleanup := func() {
			s.Drain()
			h.Close()
			s.Close()
			_ = store.Close()
		}
		c, err := dialed(ctx, &clockedClient{clock: clock, url: h.URL, store: store})
		if err != nil {
			cleanup()
			return nil, nil, err
		}
		return c, cleanup, nil
	}
}

// dialed connects a client, by connections of its own.
func dialed(ctx context.Context, c *clockedClient) (_ backend.Backend, err error) {
	c.Backend, err = httpclient.Dial(ctx, c.url)
	return c, err
}

func attachServed(ctx context.Context, b backend.Backend) (backend.Backend, func(), error) {
	first := b.(*clockedClient)
	second, err := dialed(ctx, &clockedClient{clock: first.clock, url: first.url, store: first.store})
	return second, nil, err
}

func servedLeftovers(ctx context.Context, b backend.Backend) ([]string, error) {
	switch store := b.(*clockedClient).store.(type) {
	case *memory.Backend:
		return memoryLeftovers(ctx, store)
	case *sqlite.Backend:
		queues, err := store.Queues(ctx)
		if err != nil {
			return nil, err
		}
		return store.Remains(ctx, queues...)
	}
	return nil, nil
}

// overHTTP are the checks of the first tier. The others take minutes under the race detector, most of
// them for the JSON of large bodies.
var overHTTP = []string{
	"never-early", "due-at", "order", "cancel", "reschedule", "lease-excludes", "stale-ack", "settle-once", "extend-holds",
	"close-wakes", "close-takes-nothing", "closed", "stop-returns-untouched", "attempt-counts-crashes", "dead-list", "redrive",
	"peek-pages", "get", "purge", "pause", "unique-window", "replace", "wake-up", "context-end-loses-nothing", "odd-ids",
	"features", "bad-input", "unsupported", "leaves-nothing", "clients-at-once",
}

func TestOverHTTP(t *testing.T) {
	t.Parallel()
	h := httpBackends(t)["httpclient"]
	h.Patience = patience
	for _, name := range overHTTP {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := conformance.Verify(t.Context(), h, name); err != nil {
				t.Error(err)
			}
		})
	}
}
