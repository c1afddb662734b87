package server

import (
	"context"
	"crypto/rand"
	"net/http"
	"sync/atomic"

	"github.com/delayq/delayq/backend"
)

// Server is an [http.Handler]. It is safe for concurrent use, and may be mounted below a path with
// [http.StripPrefix].
type Server struct {
	*settings
	traits  backend.Traits
	backend backend.Backend
	queues  *queues
	replies *replies
	metrics *metrics
	origins http.CrossOriginProtection

	// instance distinguishes this server from one that is started later: it has not the replies of
	// this one.
	instance string

	waiting  atomic.Int64
	draining context.Context //nolint:containedctx // ends when Drain is called
	drain    context.CancelFunc
}

// New returns a server of the queues of a backend, which the caller closes after it.
func New(b backend.Backend, opts ...Option) (*Server, error) {
	set, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	if b == nil {
		return nil, backend.Invalid("backend", "", "one that is not nil")
	}
	s := &Server{
		settings: set, backend: b, traits: b.Traits(), replies: newReplies(), metrics: newMetrics(), instance: rand.Text(),
	}
	s.queues = &queues{backend: b, traits: s.traits, set: set, byName: make(map[string]*openQueue)}
	s.draining, s.drain = context.WithCancel(context.Background())
	return s, nil
}

// Drain ends all receives that wait, and those that come later, with an empty reply. The other calls
// go on. Call it before the Shutdown of the [http.Server], and Close after that.
func (s *Server) Drain() { s.drain() }

// Close drains the server and closes its queues. It waits for up to five seconds for the calls that
// run: they may have to give messages back. Later calls fail. Messages and leases stay in the store,
// unless its leases end with a connection.
func (s *Server) Close() {
	s.Drain()
	s.queues.close()
}
