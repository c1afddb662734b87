package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/wire"
	"github.com/delayq/delayq/memory"
	"github.com/delayq/delayq/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A fixture is a server on a store, over connections of its own.
type fixture struct {
	*httptest.Server
	server *server.Server
	store  backend.Backend
	token  string
	client *http.Client
}

func start(t *testing.T, opts ...server.Option) *fixture {
	t.Helper()
	return startOn(t, memory.New(), opts...)
}

func startOn(t *testing.T, store backend.Backend, opts ...server.Option) *fixture {
	t.Helper()
	opts = append([]server.Option{server.WithLogger(slog.New(slog.DiscardHandler))}, opts...)
	s, err := server.New(store, opts...)
	must(t, err)
	f := &fixture{Server: httptest.NewServer(s), server: s, store: store, client: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(func() {
		s.Drain()
		f.client.CloseIdleConnections()
		f.Server.Close()
		s.Close()
		must(t, store.Close())
	})
	return f
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A reply is a status, and the fields of its JSON.
type reply struct {
	status int
	kind   string
	header http.Header
	body   []byte
}

func (r reply) into(t *testing.T, value any) {
	t.Helper()
	if err := json.Unmarshal(r.body, value); err != nil {
		t.Fatalf("%s: %v", r.body, err)
	}
}

// want checks a status, and the code of a problem.
func (r reply) want(t *testing.T, status int, code string) wire.Problem {
	t.Helper()
	var p wire.Problem
	if r.kind == wire.ProblemType {
		r.into(t, &p)
	}
	if r.status != status || p.Code != code {
		t.Errorf("got %d %s, want %d %s", r.status, r.body, status, code)
	}
	return p
}

// call sends a request; headers are keys and values in turn.
func (f *fixture) call(t *testing.T, method, path, body string, headers ...string) reply {
	t.Helper()
	r, err := f.try(t.Context(), method, path, body, headers...)
	must(t, err)
	return r
}

func (f *fixture) try(ctx context.Context, method, path, body string, headers ...string) (reply, error) {
	r, err := http.NewRequestWithContext(ctx, method, f.URL+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return reply{}, err
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	if f.token != "" {
		r.Header.Set("Authorization", "Bearer "+f.token)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	w, err := f.client.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = w.Body.Close() }()
	text, err := io.ReadAll(w.Body)
	return reply{w.StatusCode, w.Header.Get("Content-Type"), w.Header, text}, err
}

const orders = "/v1/queues/orders/"

func (f *fixture) post(t *testing.T, verb, body string, headers ...string) reply {
	t.Helper()
	return f.call(t, http.MethodPost, orders+verb, body, headers...)
}

// push pushes message a, which is due at once.
func (f *fixture) push(t *testing.T) {
	t.Helper()
	f.post(t, "messages", `{"id": "a"}`).want(t, http.StatusCreated, "")
}

// tenForAnHour is a receive whose lease does not end before a slow test does. Its wait is for a busy
// machine, on which the shortest may end before the look.
const tenForAnHour = `{"limit": 10, "lease_for": "1h", "wait": "10s"}`

// receive takes up to ten messages that are due. Without any it takes ten seconds.
func (f *fixture) receive(t *testing.T, headers ...string) []wire.Delivery {
	t.Helper()
	r := f.post(t, "receive", tenForAnHour, headers...)
	r.want(t, http.StatusOK, "")
	var got wire.Received
	r.into(t, &got)
	return got.Messages
}

func (f *fixture) stats(t *testing.T) backend.Stats {
	t.Helper()
	r := f.call(t, http.MethodGet, orders+"stats", "")
	r.want(t, http.StatusOK, "")
	var s wire.Stats
	r.into(t, &s)
	return s.Read()
}

// until polls for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(2 * time.Millisecond) { // the condition ends the wait
		if time.Now().After(end) {
			t.Fatalf("no %s within a minute", what)
		}
	}
}
