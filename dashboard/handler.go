package dashboard

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"path"
	"strings"

	"github.com/delayq/delayq"
)

// Handler serves the dashboard. It is safe for concurrent use.
type Handler struct {
	authorize func(r *http.Request, action Action, queue string) error
	redact    func(queue string, m *delayq.MessageInfo)
	audit     func(Event)
	log       *slog.Logger
	readOnly  string // why; "" when it is not

	ctx     context.Context //nolint:containedctx // it ends with Close
	cancel  context.CancelFunc
	handles *handles
	polls   *polls
	jobs    *jobs
	notices notices
	csrf    *csrf
	origin  *http.CrossOriginProtection
	streams chan struct{} // one entry for each browser that gets events
	mux     *http.ServeMux
}

// New returns a handler that shows the queues of a source. It calls no store before the first
// request. Close the handler when the server has ended.
//
// The handler's links are relative, so that it works under any prefix that [http.StripPrefix] or a
// proxy takes away. State of the handler, such as jobs under way, is in this process: where several
// processes serve one dashboard, a browser has to stay with one of them.
func New(source Source, opts ...Option) (*Handler, error) {
	if source == nil {
		return nil, errors.New("dashboard: New: no source; Queues, Backend and Join return one")
	}
	h := &Handler{
		log: slog.Default(), csrf: newCSRF(), origin: http.NewCrossOriginProtection(),
		streams: make(chan struct{}, streamsAtOnce),
	}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("dashboard: New: an option is nil")
		}
		if err := opt(h); err != nil {
			return nil, err
		}
	}
	if h.authorize == nil {
		h.authorize = Loopback
		h.readOnly = "the dashboard is read-only and serves this machine alone, since it was made without Authorize"
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.handles = newHandles(source)
	h.polls = newPolls(h.ctx, h.handles)
	h.jobs = newJobs(h.ctx, h.log)
	h.mux = h.routes()
	return h, nil
}

// Close ends jobs and streams, and closes the queues that the handler has opened. Requests after it
// get an error.
func (h *Handler) Close() error {
	h.cancel()
	h.polls.close()
	h.jobs.close()
	return h.handles.close()
}

func (h *Handler) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", h.queuesPage)
	mux.HandleFunc("GET /static/{file}", serveStatic)
	mux.HandleFunc("GET /events", h.events)
	mux.HandleFunc("GET /figures", h.figures)
	mux.HandleFunc("GET /queues/{queue}", h.reading(queuePage))
	mux.HandleFunc("GET /queues/{queue}/messages", h.reading(listPage(waiting)))
	mux.HandleFunc("GET /queues/{queue}/dead", h.reading(listPage(dead)))
	mux.HandleFunc("GET /queues/{queue}/find", h.reading(findMessage))
	mux.HandleFunc("GET /queues/{queue}/messages/{id}", h.reading(messagePage))
	mux.HandleFunc("GET /queues/{queue}/messages/{id}/body", h.reading(downloadBody))
	mux.HandleFunc("GET /queues/{queue}/push", h.reading(pushPage))
	mux.HandleFunc("GET /queues/{queue}/purge", h.reading(purgePage))
	mux.HandleFunc("GET /queues/{queue}/jobs/{job}", h.reading(jobPage))
	mux.HandleFunc("GET /queues/{queue}/jobs/{job}/status", h.reading(jobStatusOf))
	mux.HandleFunc("POST /queues/{queue}/push", h.changing(pushMessage))
	mux.HandleFunc("POST /queues/{queue}/purge", h.changing(purge))
	mux.HandleFunc("POST /queues/{queue}/pause", h.changing(pause))
	mux.HandleFunc("POST /queues/{queue}/resume", h.changing(resume))
	mux.HandleFunc("POST /queues/{queue}/act", h.changing(actOnSome))
	mux.HandleFunc("POST /queues/{queue}/jobs", h.changing(startJob))
	mux.HandleFunc("POST /queues/{queue}/jobs/{job}", h.changing(moveJob))
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		h.fail(w, r, &failure{http.StatusNotFound, "There is no such page. Where the dashboard is mounted under a prefix, http.StripPrefix has to take it away."})
	})
	return mux
}

// ServeHTTP serves one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	switch {
	case h.ctx.Err() != nil:
		http.Error(w, "the dashboard is closed", http.StatusServiceUnavailable)
	case r.URL.Path == "": // the prefix without its slash
		asked, _, _ := strings.Cut(r.RequestURI, "?")
		redirect(w, "./"+path.Base(asked)+"/")
	case r.URL.Path != path.Clean(r.URL.Path) || r.URL.Path[0] != '/':
		http.Error(w, "there is no such page", http.StatusNotFound) // a mux would redirect, to a place outside the prefix
	case h.origin.Check(r) != nil:
		h.fail(w, r, &failure{http.StatusForbidden, "The request comes from a page of another site."})
	default:
		h.mux.ServeHTTP(w, r)
	}
}

// redirect sends the browser to a place relative to the page: the prefix is not known here.
func redirect(w http.ResponseWriter, to string) {
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}
