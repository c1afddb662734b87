package httpclient_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/memory"
)

// TestSeveralServers has two servers of one store take requests in turn. Once the client knows, a
// push whose reply is lost goes to no other server: that one would execute it too.
func TestSeveralServers(t *testing.T) {
	t.Parallel()
	store := memory.New()
	t.Cleanup(func() { must(t, store.Close()) })
	var servers []*httputil.ReverseProxy
	for range 2 {
		to, err := url.Parse(serveOn(t, store))
		must(t, err)
		servers = append(servers, httputil.NewSingleHostReverseProxy(to))
	}
	var turn, tries atomic.Int64
	var lose atomic.Bool
	balancer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := servers[turn.Add(1)%2]
		if !lose.Load() {
			to.ServeHTTP(w, r)
			return
		}
		tries.Add(1)
		to.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(balancer.Close)
	q := open(t, dial(t, balancer.URL))
	for i := range 4 {
		must(t, errors.Join(q.Schedule(t.Context(), []backend.Message{{ID: fmt.Sprint(i)}})...))
	}
	lose.Store(true)
	err := errors.Join(q.Schedule(t.Context(), []backend.Message{{ID: "lost"}})...)
	if n := tries.Load(); n != 1 || !isUnknown(err) {
		t.Errorf("got %v after %d tries, want an unknown outcome after one", err, n)
	}
}
