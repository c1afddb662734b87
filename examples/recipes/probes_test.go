package recipes_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/delayq/delayq"
)

// probes are the paths that Kubernetes asks. A process that lives and cannot reach its store is
// alive and not ready: a restart would not help it.
func probes(q delayq.Inspector) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, r *http.Request) {})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		if _, err := q.Stats(ctx); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	return mux
}

func TestProbes(t *testing.T) {
	t.Parallel()
	q, err := delayq.New(t.Context(), "orders", delayq.InMemory())
	check(err)
	handler := probes(q)
	get := func(path string) int {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return w.Code
	}
	if live, ready := get("/livez"), get("/readyz"); live != 200 || ready != 200 {
		t.Errorf("open: live %d, ready %d", live, ready)
	}
	check(q.Close())
	if live, ready := get("/livez"), get("/readyz"); live != 200 || ready != 503 {
		t.Errorf("closed: live %d, ready %d", live, ready)
	}
}
