package server_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/wire"
	"github.com/delayq/delayq/memory"
	"github.com/delayq/delayq/server"
)

// A body that does not come is an error, and holds no connection: also that of a request which is
// rejected before its body is read. Without a bound, nobody would get the reply.
func TestBodyThatDoesNotCome(t *testing.T) {
	t.Parallel()
	f := start(t, server.Timeout(10*time.Second)) // it bounds the work of the store too, which a busy machine may delay
	for head, status := range map[string]int{
		"POST " + orders + "messages HTTP/1.1\r\nHost: localhost":         http.StatusBadRequest,
		"POST " + orders + "messages HTTP/1.1\r\nHost: other.example.com": http.StatusForbidden,
		"GET " + orders + "stats HTTP/1.1\r\nHost: localhost":             http.StatusOK,
		"GET /healthz HTTP/1.1\r\nHost: localhost":                        http.StatusOK,
	} {
		t.Run(head, func(t *testing.T) {
			t.Parallel()
			c, err := net.Dial("tcp", strings.TrimPrefix(f.URL, "http://"))
			must(t, err)
			defer func() { _ = c.Close() }()
			must(t, c.SetDeadline(time.Now().Add(2*time.Minute)))
			_, err = c.Write([]byte(head + "\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"))
			must(t, err)
			r, err := http.ReadResponse(bufio.NewReader(c), nil)
			must(t, err)
			_ = r.Body.Close()
			if r.StatusCode != status {
				t.Errorf("got %s, want %d", r.Status, status)
			}
		})
	}
}

// A handleStore has one handle, which settles nothing after Close.
type handleStore struct {
	backend.Backend
	handle *handle
}

func (s *handleStore) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	q, err := s.Backend.Open(ctx, name, o)
	s.handle = &handle{Queue: q}
	return s.handle, err
}

type handle struct {
	backend.Queue
	closed atomic.Bool
}

func (h *handle) Close() error {
	h.closed.Store(true)
	return h.Queue.Close()
}

func (h *handle) Nack(ctx context.Context, rs []backend.Return) []error {
	if h.closed.Load() {
		return backend.FailAll(len(rs), backend.ErrClosed)
	}
	return h.Queue.Nack(ctx, rs)
}

// A server that is closed gives the messages back first that could not be sent.
func TestCloseGivesBack(t *testing.T) {
	t.Parallel()
	store := memory.New()
	handles := &handleStore{Backend: store}
	f, other := startOn(t, handles), startOn(t, store)
	q, err := store.Open(t.Context(), "orders", backend.Options{})
	must(t, err)
	must(t, errors.Join(q.Schedule(t.Context(), []backend.Message{{ID: "a", Body: make([]byte, 12<<20)}})...))
	must(t, q.Close())
	c, err := net.Dial("tcp", strings.TrimPrefix(f.URL, "http://"))
	must(t, err)
	_, err = c.Write([]byte("POST " + orders + "receive HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"))
	must(t, err)
	r, err := http.ReadResponse(bufio.NewReader(c), nil) // its head; the rest is more than the buffers of the system
	must(t, err)
	defer func() { _ = r.Body.Close() }()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		f.server.Close()
	}()
	until(t, "drain", func() bool { return f.call(t, http.MethodGet, "/readyz", "").status == http.StatusServiceUnavailable })
	time.Sleep(100 * time.Millisecond) // a server that does not wait closes the handle meanwhile
	if handles.handle.closed.Load() {
		t.Error("the handle was closed before the reply was sent")
	}
	must(t, c.Close())
	<-closed
	if s := other.stats(t); s.Ready != 1 || s.InFlight != 0 {
		t.Errorf("got %+v", s)
	}
}

// An uncountable store has queues that are too deep to count.
type uncountable struct {
	backend.Backend
	lacks []backend.Feature
}

func (s uncountable) Traits() backend.Traits {
	t := s.Backend.Traits()
	for _, f := range s.lacks {
		t.Lacks = t.Lacks.With(f)
	}
	return t
}

func (s uncountable) Open(
	ctx context.Context, name string, o backend.Options,
) (backend.Queue, error) {
	q, err := s.Backend.Open(ctx, name, o)
	return deepQueue{q}, err
}

type deepQueue struct{ backend.Queue }

func (deepQueue) Stats(ctx context.Context) (backend.Stats, error) {
	<-ctx.Done()
	return backend.Stats{}, ctx.Err()
}

// A server is ready though its store takes long to count a queue.
func TestReadyWithoutCounting(t *testing.T) {
	t.Parallel()
	for _, lacks := range [][]backend.Feature{nil, {backend.Getting}} {
		f := startOn(t, uncountable{memory.New(), lacks})
		f.call(t, http.MethodGet, "/readyz", "").want(t, http.StatusOK, "")
		f.push(t)
		f.call(t, http.MethodGet, "/readyz", "").want(t, http.StatusOK, "")
	}
}

// A hanging store has acks that end with their context.
type hanging struct{ backend.Backend }

func (h hanging) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	q, err := h.Backend.Open(ctx, name, o)
	return hangingQueue{q}, err
}

type hangingQueue struct{ backend.Queue }

func (hangingQueue) Ack(ctx context.Context, ls []backend.Lease) []error {
	<-ctx.Done()
	return backend.FailAll(len(ls), ctx.Err())
}

// A message does not wait beyond its lease until one that has expired is deleted.
func TestExpiredOnesDoNotDelayOthers(t *testing.T) {
	t.Parallel()
	f := startOn(t, hanging{memory.New()}) // the ack of the old one hangs for a third of the lease
	f.post(t, "messages", `{"id": "old", "limits": {"expires": "2000-01-01T00:00:00Z"}}`).
		want(t, http.StatusCreated, "")
	f.push(t)
	var got wire.Received
	f.post(t, "receive", `{"limit": 10, "lease_for": "15s", "wait": "10s"}`).into(t, &got)
	if len(got.Messages) != 1 || !time.Now().Before(*got.Messages[0].LeaseUntil) {
		t.Errorf("got %+v at %s", got.Messages, time.Now())
	}
}
