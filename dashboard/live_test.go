package dashboard_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/dashboard"
	"github.com/delayq/delayq/internal/queuetest"
	"github.com/delayq/delayq/memory"
)

// counted is a queue that counts the calls of the store.
type counted struct {
	delayq.Queue
	stats atomic.Int64
	hang  chan struct{} // makes Stats wait
	fail  error
}

func (c *counted) Stats(ctx context.Context) (delayq.Stats, error) {
	c.stats.Add(1)
	if c.hang != nil {
		select {
		case <-c.hang:
		case <-ctx.Done():
			return delayq.Stats{}, ctx.Err()
		}
	}
	if c.fail != nil {
		return delayq.Stats{}, c.fail
	}
	return c.Queue.Stats(ctx)
}

// stream is the writer of one browser's events.
type stream struct {
	*httptest.ResponseRecorder
	mu sync.Mutex
}

func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ResponseRecorder.Write(p)
}

func (s *stream) events() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	lines := bufio.NewScanner(strings.NewReader(s.Body.String()))
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			all = append(all, data)
		}
	}
	return all
}

// watch opens a browser's stream, until the context ends.
func watch(ctx context.Context, b *browser, target string) *stream {
	s := &stream{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequestWithContext(ctx, "GET", target, nil)
	go b.handler.ServeHTTP(s, r)
	return s
}

// However many browsers look at a queue, its store counts it every two seconds. When they are gone
// it is left alone.
func TestBrowsersShareThePolling(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		q := &counted{Queue: queuetest.New(t)}
		b := open(t, dashboard.Queues(map[string]delayq.Queue{"orders": q}), anybody)
		ctx, leave := context.WithCancel(t.Context())
		var streams []*stream
		for range 20 {
			streams = append(streams, watch(ctx, b, "/events?q=orders"))
		}
		push(t, q, "a", "")
		for range 60 {
			time.Sleep(time.Second) // virtual
			b.get("/")
			b.do("GET", "/figures?q=orders", nil)
		}
		if n := q.stats.Load(); n < 25 || n > 35 {
			t.Errorf("in a minute the store has counted %d times", n)
		}
		for _, s := range streams {
			if n := len(s.events()); n < 25 || n > 35 {
				t.Fatalf("in a minute a browser has got %d events", n)
			}
		}
		last := streams[0].events()
		if got := last[len(last)-1]; !strings.Contains(got, `"ready":"1"`) || !strings.Contains(got, `"d":{`) {
			t.Errorf("the last event is %s", got)
		}
		leave()
		time.Sleep(time.Minute) // virtual
		gone := q.stats.Load()
		time.Sleep(time.Hour) // virtual
		if n := q.stats.Load(); n != gone {
			t.Errorf("nobody looks, and the store has counted %d times", n-gone)
		}
	})
}

// A store that hangs delays no page for long, and the page says so.
func TestStoreHangs(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		q := &counted{Queue: queuetest.New(t), hang: make(chan struct{})}
		b := open(t, dashboard.Queues(map[string]delayq.Queue{"orders": q, "sms": q}), anybody)
		began := time.Now()
		b.get("/", "orders The store has not replied yet.", "sms The store has not replied yet.")
		if took := time.Since(began); took > 1100*time.Millisecond {
			t.Errorf("the page took %v", took)
		}
		close(q.hang)
		synctest.Wait()
		time.Sleep(3 * time.Second) // virtual
		b.get("/", "orders 0 0 0 0")
	})
}

func TestStoreFails(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		q := &counted{Queue: queuetest.New(t), fail: fmt.Errorf("dial: \u202e%w", delayq.ErrUnavailable)}
		b := open(t, dashboard.Queues(map[string]delayq.Queue{"orders": q}), anybody)
		b.get("/", `The store cannot be reached for now: dial: \u202e`)
		b.get("/queues/orders", "The store cannot be reached for now")
	})
}

func TestStreamsAreBounded(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		b, _ := openQueue(t)
		ctx, leave := context.WithCancel(t.Context())
		for range 500 {
			watch(ctx, b, "/events?q=orders")
		}
		synctest.Wait()
		if r := b.do("GET", "/events?q=orders", nil); r.status != http.StatusServiceUnavailable || r.head.Get("Retry-After") == "" {
			t.Errorf("stream 501 got %d", r.status)
		}
		b.get("/")
		leave()
		synctest.Wait()
		ctx, leave = context.WithCancel(t.Context())
		defer leave()
		if s := watch(ctx, b, "/events?q=orders"); s != nil {
			synctest.Wait()
			if len(s.events()) != 1 {
				t.Errorf("a new stream got %q", s.events())
			}
		}
	})
}

// A stream ends after some minutes, so that the rights of its user are looked at again.
func TestStreamEnds(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		b, _ := openQueue(t)
		began := time.Now()
		b.do("GET", "/events?q=orders", nil)
		if took := time.Since(began); took != 5*time.Minute {
			t.Errorf("the stream took %v", took)
		}
	})
}

// Over a real connection: a browser that reads nothing holds up neither pages nor other browsers.
func TestSlowBrowser(t *testing.T) {
	t.Parallel()
	b, q := openQueue(t)
	push(t, q, "a", "")
	server := httptest.NewServer(b.handler)
	t.Cleanup(server.CloseClientConnections) // before the handler is closed
	t.Cleanup(server.Close)
	res, err := server.Client().Get(server.URL + "/events?q=orders")
	mustDo(t, err)
	defer func() { _ = res.Body.Close() }()
	ready := "" // in the first event after the store has replied
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var all map[string]struct{ T map[string]string }
		mustDo(t, json.Unmarshal([]byte(data), &all))
		if ready = all["orders"].T["ready"]; ready != "" {
			break
		}
	}
	if ready != "1" {
		t.Errorf("%q messages are ready, error %v", ready, lines.Err())
	}
	b.get("/")
	server.CloseClientConnections()
}

// The dashboard opens what its source lists and nothing else, and closes what nobody looks at.
func TestQueuesAreOpenedAndClosed(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		s := &listed{names: []string{"a", "b"}, opened: map[string]int{}, closed: map[string]int{}}
		b := open(t, s, anybody)
		b.get("/")
		b.get("/queues/a")
		s.wantCalls(t, "a", 1, 0)
		s.wantCalls(t, "b", 1, 0)
		b.rejected(b.do("GET", "/queues/c", nil), http.StatusNotFound, "no such queue")
		if r := b.do("GET", "/figures?q=c", nil); r.status != http.StatusNotFound {
			t.Errorf("queue c is not listed, and has figures: %s", r.body)
		}
		s.wantCalls(t, "c", 0, 0)
		s.set(nil, "a", "b", "c")
		time.Sleep(10 * time.Minute) // virtual
		b.get("/queues/c")
		synctest.Wait()
		s.wantCalls(t, "a", 1, 1)
		s.wantCalls(t, "b", 1, 1)
		s.wantCalls(t, "c", 1, 0)
		s.set(errors.New("no route to host"))
		time.Sleep(10 * time.Second) // virtual
		b.rejected(b.do("GET", "/", nil), http.StatusBadGateway, "no route to host")
	})
}

// listed is a source that counts.
type listed struct {
	mu             sync.Mutex
	names          []string
	opened, closed map[string]int
	broken         error
}

func (l *listed) List(context.Context) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.names), l.broken
}

func (l *listed) set(broken error, names ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.names, l.broken = names, broken
}

// wantCalls checks how often a queue was opened and closed.
func (l *listed) wantCalls(t *testing.T, name string, opened, closed int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened[name] != opened || l.closed[name] != closed {
		t.Errorf("queue %q was opened %d times and closed %d times, want %d and %d", name, l.opened[name], l.closed[name], opened, closed)
	}
}

func (l *listed) Open(ctx context.Context, name string) (delayq.Queue, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opened[name]++
	q, err := delayq.New(ctx, name, delayq.InMemory(), delayq.WithLogger(queuetest.Silent))
	return &listedQueue{q, l, name}, err
}

type listedQueue struct {
	delayq.Queue
	l    *listed
	name string
}

func (q *listedQueue) Close() error {
	q.l.mu.Lock()
	q.l.closed[q.name]++
	q.l.mu.Unlock()
	return q.Queue.Close()
}

// A backend's queues come and go; the ones that are named are always there.
func TestBackendListsQueues(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		m := memory.New()
		defer func() { mustDo(t, m.Close()) }()
		q, err := delayq.New(t.Context(), "orders", delayq.WithBackend(m), delayq.WithLogger(queuetest.Silent))
		mustDo(t, err)
		defer func() { mustDo(t, q.Close()) }()
		push(t, q, "a", "")
		one := dashboard.Backend(m, []string{"named"}, delayq.WithLogger(queuetest.Silent))
		b := open(t, dashboard.Join(map[string]dashboard.Source{"x": one, "y": dashboard.Queues(nil)}), anybody)
		b.get("/", "x/named 0", "x/orders 0 1")
		b.get("/queues/~eC9vcmRlcnM/messages", "a ready")
	})
}

// silent is a source whose store does not reply.
type silent struct{ calls atomic.Int64 }

func (s *silent) List(ctx context.Context) ([]string, error) {
	s.calls.Add(1)
	<-ctx.Done()
	return nil, ctx.Err()
}

func (*silent) Open(context.Context, string) (delayq.Queue, error) {
	return nil, errors.New("no queue")
}

// Of several stores, those that fail or hang do not hide the others, and the page tells of them.
func TestSomeStoresFail(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		q, hangs, fails := queuetest.New(t), &silent{}, &listed{broken: errors.New("no route to host")}
		b := open(t, dashboard.Join(map[string]dashboard.Source{
			"a": hangs, "b": dashboard.Queues(map[string]delayq.Queue{"or/ders": q}), "c": fails,
		}), anybody)
		began := time.Now()
		b.get("/", "Some queues are not shown: a: context deadline exceeded; c: no route to host", "b/or/ders 0 0 0 0")
		for range 10 {
			b.get("/queues/~Yi9vci9kZXJz")
			time.Sleep(time.Second) // virtual
		}
		if took := time.Since(began); took > 15*time.Second || hangs.calls.Load() != 1 {
			t.Errorf("the pages took %v, with %d calls of the store that hangs", took-10*time.Second, hangs.calls.Load())
		}
		b.rejected(b.do("GET", "/queues/~Yy94", nil), http.StatusBadGateway, "c: no route to host") // c/x
	})
}
