package server

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"net/http"
	"time"

	"github.com/delayq/delayq/backend"
)

// health says that the process serves requests.
func (s *Server) health(w http.ResponseWriter) { plain(w, http.StatusOK, "ok\n") }

const readyWithin = 5 * time.Second

// ready says that the server takes work: it is not draining, and the store replies.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyWithin)
	defer cancel()
	switch err := s.probe(ctx); {
	case s.draining.Err() != nil:
		plain(w, http.StatusServiceUnavailable, "draining\n")
	case err != nil:
		s.log.Warn("delayq: the store does not reply", "err", err)
		plain(w, http.StatusServiceUnavailable, "the store does not reply\n")
	default:
		plain(w, http.StatusOK, "ok\n")
	}
}

// probeQueue is opened to see that the store replies, where no queue is open. Nothing is pushed to
// it.
const probeQueue = "delayq.ready"

func (s *Server) probe(ctx context.Context) error {
	name := s.queues.any()
	if name == "" && s.traits.Leases == backend.InConnection { // a queue of a broker would stay
		return nil
	}
	q, done, err := s.queues.use(ctx, cmp.Or(name, probeQueue))
	if err != nil {
		return err
	}
	defer done()
	err = look(ctx, q, s.traits)
	if errors.Is(err, backend.ErrUnsupported) || errors.Is(err, backend.ErrNotFound) {
		return nil
	}
	return err
}

// look has the store do what costs it least. Counting a deep queue may take longer than
// readyWithin.
func look(ctx context.Context, q backend.Queue, traits backend.Traits) error {
	switch {
	case traits.Supports(backend.Getting):
		_, errs := q.Get(ctx, []string{probeQueue})
		return errors.Join(errs...)
	case traits.Supports(backend.Peeking):
		_, _, err := q.Peek(ctx, "", 1)
		return err
	}
	_, err := q.Stats(ctx)
	return err
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
}

//go:embed openapi.json
var document []byte

// Document returns the OpenAPI 3.1 document of the calls, which the server returns at /openapi.json.
func Document() []byte { return append([]byte(nil), document...) }

func serveDocument(w http.ResponseWriter) {
	w.Header().Set("Content-Type", jsonType)
	_, _ = w.Write(document)
}
