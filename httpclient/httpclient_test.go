package httpclient_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/httpclient"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/memory"
	"github.com/delayq/delayq/server"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// serve starts a server on a new store.
func serve(t *testing.T, opts ...server.Option) (url string) {
	t.Helper()
	return serveOn(t, memory.New(), opts...)
}

func serveOn(t *testing.T, store backend.Backend, opts ...server.Option) (url string) {
	t.Helper()
	s, err := server.New(store, append(opts, server.WithLogger(slog.New(slog.DiscardHandler)))...)
	must(t, err)
	h := httptest.NewServer(s)
	t.Cleanup(func() { s.Drain(); h.Close(); s.Close() })
	return h.URL
}

func dial(t *testing.T, url string) *httpclient.Backend {
	t.Helper()
	b, err := httpclient.Dial(t.Context(), url)
	must(t, err)
	t.Cleanup(func() { must(t, b.Close()) })
	return b
}

func open(t *testing.T, b backend.Backend) backend.Queue {
	t.Helper()
	q, err := b.Open(t.Context(), "orders", backend.Options{Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	return q
}

// Each URL that cannot be used is an error that shows no token.
func TestBadURLs(t *testing.T) {
	t.Parallel()
	url := strings.TrimPrefix(serve(t), "http://")
	for _, bad := range []string{
		"delayq+http:///q", "delayq+http://" + url, "delayq+http://" + url + "/", "delayq+http:" + url, "delayq+http://secret:secret@" + url + "/q",
		"delayq+http://" + url + "/q#secret", "delayq+http://" + url + "/q?waits=1s", "delayq+http://" + url + "/q?wait=1ms", "delayq+http://" + url + "/q?wait=2s&wait=3s",
		"delayq+http://" + url + "/q?timeout=x", "delayq+http://" + url + "/q?tls_ca=nosuch", "delayq+https://" + url + "/q?tls_ca=nosuch",
	} {
		q, err := delayq.Open(t.Context(), bad)
		if !errors.Is(err, delayq.ErrInvalid) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, %v", bad, q, err)
		}
	}
	for _, good := range []string{"/orders", "/a%2Eb", "/orders?wait=2s&timeout=3s"} {
		q, err := delayq.Open(t.Context(), "delayq+http://"+url+good)
		if err != nil {
			t.Errorf("%s: %v", good, err)
			continue
		}
		_, err = q.Push(t.Context(), nil)
		must(t, errors.Join(err, q.Close()))
	}
}

// A server without a batch size is none of delayq: a call in batches of 0 would never end.
func TestServerWithoutABatch(t *testing.T) {
	t.Parallel()
	for _, store := range []string{`{}`, `{"name": "memory", "max_batch": -1}`} {
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, store)
		}))
		t.Cleanup(h.Close)
		b, err := httpclient.Dial(t.Context(), h.URL)
		if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), "max_batch") {
			t.Errorf("%s: got %v, %v", store, b, err)
		}
	}
}

// Errors of the connection say whether something may have happened.
func TestNoServer(t *testing.T) {
	t.Parallel()
	proxy := testenv.Proxy(t, strings.TrimPrefix(serve(t), "http://"))
	b := dial(t, "http://"+proxy.Addr())
	q := open(t, b)
	push := func(ctx context.Context) error {
		return errors.Join(q.Schedule(ctx, []backend.Message{{ID: "a"}})...)
	}
	proxy.Refuse(true)
	proxy.CloseAll()
	if err := push(t.Context()); !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("no server: %v", err)
	}
	if _, err := httpclient.Dial(t.Context(), "http://"+proxy.Addr()); !errors.Is(err, backend.ErrUnavailable) || errors.Is(err, backend.ErrOutcomeUnknown) {
		t.Errorf("Dial: %v", err)
	}
	proxy.Refuse(false)
	proxy.Blackhole(true)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // a busy machine is slow to connect
	defer cancel()
	began := time.Now()
	if err := push(ctx); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, backend.ErrOutcomeUnknown) || time.Since(began) > 10*time.Second {
		t.Errorf("a server that does not reply: %v after %v", err, time.Since(began))
	}
	proxy.Blackhole(false)
	proxy.CloseAll()
	if err := push(t.Context()); err != nil && !errors.Is(err, backend.ErrDuplicate) {
		t.Errorf("the server is back: %v", err)
	}
}

// Replies are lost all the time, and no call notices: each is executed once.
func TestLostReplies(t *testing.T) {
	t.Parallel()
	const messages = 60
	proxy := testenv.Proxy(t, strings.TrimPrefix(serve(t), "http://"))
	proxy.Seed(1)
	q := open(t, dial(t, "http://"+proxy.Addr()))
	proxy.CutReplies(0.1)
	unknown := 0
	known := func(what string, err error) {
		switch {
		case errors.Is(err, backend.ErrOutcomeUnknown):
			unknown++ // each of three tries was cut
		case err != nil:
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := range messages {
		known("push", errors.Join(q.Schedule(t.Context(), []backend.Message{{ID: fmt.Sprint(i)}})...))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for range messages - unknown { // those whose push is unknown may be there
		ds, err := q.Receive(ctx, 1, time.Hour)
		if known("receive", err); err != nil {
			continue
		}
		if ds[0].Attempt != 1 {
			t.Errorf("message %s was handed out %d times", ds[0].ID, ds[0].Attempt)
		}
		known("ack", errors.Join(q.Ack(t.Context(), []backend.Lease{ds[0].Lease()})...))
	}
	proxy.CutReplies(0)
	if proxy.Cuts() < 10 || unknown > proxy.Cuts()/5 {
		t.Errorf("%d replies were cut; of %d calls the outcome is unknown", proxy.Cuts(), unknown)
	}
	if s, err := q.Stats(t.Context()); err != nil || s.Ready+s.InFlight > int64(unknown) {
		t.Errorf("got %+v, %v; the outcome of %d calls is unknown", s, err, unknown)
	}
}

// A Receive whose context ends takes nothing: the next worker gets the message at once, at attempt 1.
func TestEndedReceiveTakesNothing(t *testing.T) {
	t.Parallel()
	b := dial(t, serve(t))
	q := open(t, b)
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for range 20 {
		all.Go(func() {
			if ds, err := q.Receive(ctx, 1, time.Hour); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, %v", ds, err)
			}
		})
	}
	cancel()
	all.Wait()
	must(t, q.Close())
	q = open(t, b)
	must(t, errors.Join(q.Schedule(t.Context(), []backend.Message{{ID: "a"}})...))
	ds, err := q.Receive(t.Context(), 1, time.Hour)
	if err != nil || len(ds) != 1 || ds[0].Attempt != 1 {
		t.Errorf("got %+v, %v", ds, err)
	}
}

// Batches larger than what the server takes are several requests. Bytes that are long as JSON text
// fit too.
func TestLargeBatches(t *testing.T) {
	t.Parallel()
	q := open(t, dial(t, serve(t, server.MaxBatch(3))))
	ms := make([]backend.Message, 4)
	for i := range ms {
		ms[i] = backend.Message{ID: fmt.Sprint(i), Body: make([]byte, 1<<12)} // zeros are six bytes each as text
	}
	must(t, errors.Join(q.Schedule(t.Context(), ms)...))
	if s, err := q.Stats(t.Context()); err != nil || s.Ready != 4 {
		t.Errorf("got %+v, %v", s, err)
	}
	big := backend.Message{ID: "big", Body: make([]byte, backend.MaxBody)}
	must(t, errors.Join(q.Schedule(t.Context(), []backend.Message{big})...))
	infos, errs := q.Get(t.Context(), []string{"big"})
	if errors.Join(errs...) != nil || len(infos[0].Body) != backend.MaxBody {
		t.Errorf("got %d bytes, %v", len(infos[0].Body), errs)
	}
}

// The line separators of Unicode are three bytes, and six as JSON text.
func TestLargeBodyOfLineSeparators(t *testing.T) {
	t.Parallel()
	q := open(t, dial(t, serve(t)))
	body := bytes.Repeat([]byte("\u2028"), backend.MaxBody/len("\u2028"))
	must(t, errors.Join(q.Schedule(t.Context(), []backend.Message{{ID: "a", Body: body}})...))
}

// A reply of another program is an error.
func TestNotAServer(t *testing.T) {
	t.Parallel()
	h := httptest.NewServer(nil) // of the default mux, which has nothing
	defer h.Close()
	_, err := httpclient.Dial(t.Context(), h.URL)
	if err == nil || !strings.Contains(err.Error(), "not a reply of a delayq server") {
		t.Errorf("got %v", err)
	}
}

// A get of more than fits into one reply is several requests.
func TestGetOfLargeMessages(t *testing.T) {
	t.Parallel()
	q := open(t, dial(t, serve(t, server.MaxReplyBytes(1<<16))))
	var ids []string
	for i := range 40 {
		ids = append(ids, fmt.Sprintf("m%02d", i))
		must(t, errors.Join(q.Schedule(t.Context(), []backend.Message{{ID: ids[i], Body: make([]byte, 1<<12)}})...))
	}
	ids = append(ids, "nosuch")
	infos, errs := q.Get(t.Context(), ids)
	if len(infos) != 41 || len(errs) != 41 || !errors.Is(errs[40], backend.ErrNotFound) {
		t.Fatalf("%d messages, %d errors", len(infos), len(errs))
	}
	for i, m := range infos[:40] {
		if errs[i] != nil || m.ID != ids[i] || len(m.Body) != 1<<12 {
			t.Errorf("message %d: %s of %d bytes, %v", i, m.ID, len(m.Body), errs[i])
		}
	}
}
