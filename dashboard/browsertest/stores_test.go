package browsertest

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/dashboard"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/memory"
	"github.com/delayq/delayq/rabbitmq"
	"github.com/delayq/delayq/sqlite"
	"github.com/delayq/delayq/zsetpoll"
)

var silent = delayq.WithLogger(slog.New(slog.DiscardHandler))

// stores are what the dashboard is walked on.
var stores = map[string]func(t *testing.T) backend.Backend{
	"memory": func(*testing.T) backend.Backend { return memory.New() },
	"redis": func(t *testing.T) backend.Backend {
		client := redis.NewClient(testenv.Redis(t).Options())
		t.Cleanup(func() { _ = client.Close() })
		return zsetpoll.New(client)
	},
	"sqlite":   func(t *testing.T) backend.Backend { return sqlite.New(filepath.Join(t.TempDir(), "delay.db")) },
	"rabbitmq": func(t *testing.T) backend.Backend { return rabbitmq.New(testenv.RabbitMQ(t).URL()) },
}

// serve returns the URL of a dashboard of the backend, and an open queue on it.
func serve(t *testing.T, b backend.Backend, opts ...dashboard.Option) (base string, q delayq.Queue) {
	t.Helper()
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	q = openNamed(t, b, "orders")
	source := dashboard.Backend(b, []string{"orders", "mail"}, silent)
	h, err := dashboard.New(source, append([]dashboard.Option{dashboard.Authorize(dashboard.Loopback), dashboard.WithLogger(slog.New(slog.DiscardHandler))}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/admin/delayq/", http.StripPrefix("/admin/delayq", h))
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		if err := h.Close(); err != nil { // which ends the streams
			t.Error(err)
		}
		server.Close()
	})
	return server.URL + "/admin/delayq", q
}

func openNamed(t *testing.T, b backend.Backend, name string) delayq.Queue {
	t.Helper()
	q, err := testenv.RetryOnBusyRabbit(t.Context(), func() (delayq.Queue, error) {
		return delayq.New(t.Context(), name, delayq.WithBackend(b), delayq.WithLease(time.Hour), silent)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(); err != nil && !errors.Is(err, delayq.ErrClosed) {
			t.Error(err)
		}
	})
	return q
}

const hostile = "\u202e<script>window.hacked = 1</script>"

// fill puts messages of all states into a queue, some of them hostile.
func fill(t *testing.T, q delayq.Queue) {
	t.Helper()
	reasons := []string{"mail server is down", "address unknown: ann@example.org", hostile}
	for i := range 12 {
		push(t, q, `{"to":"ann@example.org","order":`+strconv.Itoa(1000+i)+`}`, delayq.ID("mail-"+strconv.Itoa(1000+i)), delayq.Type("mail"))
		d, err := q.Receive(t.Context())
		must(t, err)
		must(t, d.DeadLetter(t.Context(), reasons[i%len(reasons)]))
	}
	push(t, q, "x", delayq.ID("in-flight"))
	_, err := q.Receive(t.Context())
	must(t, err)
	types := []string{"order-timeout", "reminder", "webhook"}
	for i := range 60 {
		body := `{"order":` + strconv.Itoa(17000+i) + `,"total":` + strconv.Itoa(7*i%90) + `.5,"currency":"EUR"}`
		delay := time.Duration(i*i*i) * 11 * time.Second
		push(t, q, body, delayq.ID("order-"+strconv.Itoa(17000+i)), delayq.Type(types[i%3]), delayq.Header("tenant", "shop-"+strconv.Itoa(i%4)), delayq.After(delay+time.Hour/4))
	}
	// None of these is due before a slow test ends: tests count them.
	push(t, q, hostile, delayq.ID("h-</td>"+strings.Trim(hostile, "\u202e")), delayq.Header("h", hostile), delayq.Type(hostile), delayq.After(10*time.Minute))
	push(t, q, "\x00\xff\x10 binary", delayq.ID("binary"), delayq.After(11*time.Minute))
}

func push(t *testing.T, q delayq.Queue, body string, opts ...delayq.PushOption) {
	t.Helper()
	_, err := q.Push(t.Context(), []byte(body), opts...)
	must(t, err)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// escaped is an id of plain bytes as a part of a path.
func escaped(id string) string { return url.PathEscape(id) }
