package httpclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/wire"
	"github.com/delayq/delayq/memory"
	"github.com/delayq/delayq/server"
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

// isUnknown reports whether an error says that the call may have been executed or not.
func isUnknown(err error) bool {
	return errors.Is(err, backend.ErrUnavailable) && errors.Is(err, backend.ErrOutcomeUnknown)
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
			if !isUnknown(err) {
				t.Errorf("%s: message %d: %v", name, i, err)
			}
		}
	}
}

// A proxy passes a request to a server, or sends a reply of its own.
type proxy func(w http.ResponseWriter, r *http.Request, s *server.Server)

// proxied starts a server on a new store behind a proxy.
func proxied(t *testing.T, pass proxy) (url string) {
	t.Helper()
	store := memory.New()
	s, err := server.New(store)
	must(t, err)
	handle := func(w http.ResponseWriter, r *http.Request) { pass(w, r, s) }
	h := httptest.NewServer(http.HandlerFunc(handle))
	t.Cleanup(func() { s.Drain(); h.Close(); s.Close(); must(t, store.Close()) })
	return h.URL
}

// A proxy that gives up on the server does not know what the server did.
func TestErrorPageOfAProxy(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusInternalServerError, http.StatusBadGateway, 520, 524} {
		url := proxied(t, func(w http.ResponseWriter, r *http.Request, s *server.Server) {
			if r.Method != http.MethodPost {
				s.ServeHTTP(w, r)
				return
			}
			s.ServeHTTP(httptest.NewRecorder(), r)
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(status)
		})
		q := open(t, dial(t, url))
		err := errors.Join(q.Schedule(t.Context(), []backend.Message{{ID: "a"}})...)
		if !isUnknown(err) {
			t.Errorf("%d: %v", status, err)
		}
		if s, err := q.Stats(t.Context()); err != nil || s.Ready != 1 {
			t.Errorf("%d: got %+v, %v", status, s, err)
		}
	}
}

// A reply that nothing was changed, to a request that was sent again, is not one to the first.
func TestUnavailableAfterALostReply(t *testing.T) {
	t.Parallel()
	for _, code := range []string{wire.Unavailable, wire.TooMany} {
		var tries atomic.Int64
		url := proxied(t, func(w http.ResponseWriter, r *http.Request, s *server.Server) {
			switch {
			case r.Method != http.MethodPost:
				s.ServeHTTP(w, r)
			case tries.Add(1) == 1:
				s.ServeHTTP(httptest.NewRecorder(), r)
				panic(http.ErrAbortHandler) // and the connection breaks
			default:
				p := wire.New(code, "a test")
				w.Header().Set("Content-Type", wire.ProblemType)
				w.WriteHeader(p.Status)
				_ = json.NewEncoder(w).Encode(p)
			}
		})
		q := open(t, dial(t, url))
		err := errors.Join(q.Schedule(t.Context(), []backend.Message{{ID: "a"}})...)
		if tries.Load() != 2 || !isUnknown(err) {
			t.Errorf("%s: %v after %d tries", code, err, tries.Load())
		}
		if s, err := q.Stats(t.Context()); err != nil || s.Ready != 1 {
			t.Errorf("%s: got %+v, %v", code, s, err)
		}
	}
}

// A request that is sent again says how long ago the first try began.
func TestAgeOfTheFirstTry(t *testing.T) {
	t.Parallel()
	ages := make(chan string, 3)
	url := proxied(t, func(w http.ResponseWriter, r *http.Request, s *server.Server) {
		if r.Method == http.MethodPost {
			ages <- r.Header.Get(wire.AgeHeader)
			if len(ages) < cap(ages) {
				panic(http.ErrAbortHandler) // and the connection breaks
			}
		}
		s.ServeHTTP(w, r)
	})
	q := open(t, dial(t, url))
	must(t, errors.Join(q.Schedule(t.Context(), []backend.Message{{ID: "a"}})...))
	if age := <-ages; age != "" {
		t.Errorf("the first try has an age of %q", age)
	}
	for _, least := range []int{20, 520} {
		age := <-ages
		if ms, err := strconv.Atoi(age); err != nil || ms < least {
			t.Errorf("got %q, want at least %d: %v", age, least, err)
		}
	}
}
