package server

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/wire"
)

// metrics count the requests of a server. They are written as text for Prometheus by hand: that is
// less than the dependency.
type metrics struct {
	mu      sync.Mutex
	count   map[outcome]int64
	seconds map[string]time.Duration // by verb
}

type outcome struct {
	verb   string
	status int
}

func newMetrics() *metrics {
	return &metrics{count: make(map[outcome]int64), seconds: make(map[string]time.Duration)}
}

func (m *metrics) observe(verb string, status int, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count[outcome{verb, status}]++
	m.seconds[verb] += took
}

// serveMetrics needs the right to read all queues.
func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request) {
	c, p := s.identify(r)
	if p == nil && !c.may(Read, "") {
		p = wire.New(wire.Forbidden, "needed is the right read on all queues, read:*")
	}
	if p != nil {
		s.fail(w, r, p)
		return
	}
	var b strings.Builder
	s.metrics.write(&b)
	head(&b, "delayq_server_waiting_receives", "gauge", "Receives that wait for a message.")
	fmt.Fprintf(&b, "delayq_server_waiting_receives %d\n", s.waiting.Load())
	head(&b, "delayq_server_open_queues", "gauge", "Queues that are open.")
	fmt.Fprintf(&b, "delayq_server_open_queues %d\n", s.queues.count())
	s.writeDepths(r.Context(), &b)
	plain(w, http.StatusOK, b.String())
}

func head(b *strings.Builder, name, kind, help string) {
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

func (m *metrics) write(b *strings.Builder) {
	m.mu.Lock()
	defer m.mu.Unlock()
	head(b, "delayq_server_requests_total", "counter", "Requests by verb and status.")
	for _, o := range slices.SortedFunc(maps.Keys(m.count), func(a, b outcome) int {
		return strings.Compare(a.verb+strconv.Itoa(a.status), b.verb+strconv.Itoa(b.status))
	}) {
		fmt.Fprintf(b, "delayq_server_requests_total{verb=%q,status=\"%d\"} %d\n", o.verb, o.status, m.count[o])
	}
	head(b, "delayq_server_request_seconds_total", "counter", "Time that requests took, by verb. A receive waits.")
	for _, verb := range slices.Sorted(maps.Keys(m.seconds)) {
		fmt.Fprintf(b, "delayq_server_request_seconds_total{verb=%q} %g\n", verb, m.seconds[verb].Seconds())
	}
}

// depthsWithin bounds how long a scrape waits for the store.
const depthsWithin = 5 * time.Second

// writeDepths writes the counts of all open queues, where the store counts.
func (s *Server) writeDepths(ctx context.Context, b *strings.Builder) {
	if !s.traits.Supports(backend.Counting) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, depthsWithin)
	defer cancel()
	head(b, "delayq_server_queue_messages", "gauge", "Messages of the open queues, by state.")
	s.queues.all(func(q *openQueue) {
		if q.name == probeQueue {
			return
		}
		stats, err := q.Stats(ctx)
		if err != nil {
			return
		}
		for _, n := range []struct {
			state string
			count int64
		}{{"scheduled", stats.Scheduled}, {"ready", stats.Ready}, {"in flight", stats.InFlight}, {"dead", stats.Dead}} {
			if n.count != backend.Unknown {
				fmt.Fprintf(b, "delayq_server_queue_messages{queue=%q,state=%q} %d\n", q.name, n.state, n.count)
			}
		}
	})
}
