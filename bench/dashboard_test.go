package bench

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
	"github.com/delayq/delayq/dashboard"
	"github.com/delayq/delayq/zsetpoll"
)

// BenchmarkDashboard measures the dashboard's pages on a queue with a million scheduled messages and
// 100,000 dead letters in Redis. It reports, of each page, ms/page in the middle and of the slowest
// one, and the longest time in microseconds that one command has kept the server busy, as its
// SLOWLOG has it, and how many commands took more than 5 ms. On a machine with other work that is
// also time in which the server waited for a processor.
func BenchmarkDashboard(b *testing.B) {
	server := load.OwnRedis(b)
	store := zsetpoll.New(server.Client(b))
	b.Cleanup(func() { load.Must(b, store.Close()) })
	q := open(b, store, "orders")
	fillDashboard(b, q, load.UnlessShort(1_000_000, 10_000), load.UnlessShort(100_000, 1_000))
	load.Must(b, server.Control.ConfigSet(context.Background(), "slowlog-log-slower-than", "500").Err())
	load.Must(b, server.Control.ConfigSet(context.Background(), "slowlog-max-len", "100000").Err())
	pages, err := dashboard.New(dashboard.Backend(store, []string{"orders"}, load.Quiet), dashboard.Authorize(dashboard.Loopback), dashboard.ReadOnly())
	load.Must(b, err)
	b.Cleanup(func() { load.Must(b, pages.Close()) })
	for _, page := range []struct{ name, target string }{
		{"queues", "/"}, {"queue", "/queues/orders"}, {"messages", "/queues/orders/messages"}, {"filter", "/queues/orders/messages?type=none"},
		{"dead", "/queues/orders/dead"}, {"dead-filter", "/queues/orders/dead?reason=none"}, {"message", "/queues/orders/messages/m-1000"},
	} {
		b.Run("page="+page.name, func(b *testing.B) { openPages(b, server, pages, page.target) })
	}
}

func openPages(b *testing.B, server load.Redis, pages http.Handler, target string) {
	load.Must(b, server.Control.Do(context.Background(), "SLOWLOG", "RESET").Err())
	var took []time.Duration
	for b.Loop() {
		r := httptest.NewRequest(http.MethodGet, target, nil)
		r.RemoteAddr, r.Host = "127.0.0.1:1", "localhost"
		w := httptest.NewRecorder()
		start := time.Now()
		pages.ServeHTTP(w, r)
		took = append(took, time.Since(start))
		if w.Code != http.StatusOK {
			b.Fatalf("%s: %d", target, w.Code)
		}
	}
	slices.Sort(took)
	b.ReportMetric(load.Millis(took[len(took)/2]), "ms/page")
	b.ReportMetric(load.Millis(took[len(took)-1]), "ms/slowest")
	slow, err := server.Control.SlowLogGet(context.Background(), 100_000).Result()
	load.Must(b, err)
	var longest time.Duration
	long := 0
	for _, s := range slow {
		if s.Duration > 5*time.Millisecond {
			long++
		}
		longest = max(longest, s.Duration)
	}
	b.ReportMetric(load.Micros(longest), "µs-busy")
	b.ReportMetric(float64(long), "over-5ms")
}

// fillDashboard stores messages and dead letters.
func fillDashboard(b *testing.B, q delayq.Queue, scheduled, dead int) {
	ctx := context.Background()
	batch := make([]delayq.Message, 0, 1000)
	for i := range dead {
		batch = append(batch, delayq.Message{ID: fmt.Sprint("d-", i), Body: []byte(`{"order":` + strconv.Itoa(i) + `}`), Headers: map[string]string{"type": "mail"}})
		if len(batch) < cap(batch) && i < dead-1 {
			continue
		}
		_, err := q.PushBatch(ctx, batch)
		load.Must(b, err)
		for left := len(batch); left > 0; {
			ds, err := q.ReceiveBatch(ctx, left)
			load.Must(b, err)
			load.Must(b, q.DeadLetterBatch(ctx, ds, "mail server is down"))
			left -= len(ds)
		}
		batch = batch[:0]
	}
	for i := range scheduled {
		due := time.Hour + time.Duration(i)*time.Second
		batch = append(batch, delayq.Message{ID: fmt.Sprint("m-", i), Body: []byte(`{"order":` + strconv.Itoa(i) + `}`), Headers: map[string]string{"type": "tick"}, Delay: due})
		if len(batch) == cap(batch) || i == scheduled-1 {
			_, err := q.PushBatch(ctx, batch)
			load.Must(b, err)
			batch = batch[:0]
		}
	}
}
