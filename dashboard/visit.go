package dashboard

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/delayq/delayq"
)

const (
	pageLimit = 10 * time.Second // for the stores to reply
	formLimit = 1 << 20          // bytes
	bodyLimit = 4 << 20          // bytes of a form with a message's body
)

// failure is an error for the user.
type failure struct {
	status int
	text   string
}

func (f *failure) Error() string { return f.text }

func invalid(err error) error { return &failure{http.StatusBadRequest, "Invalid: " + err.Error()} }

// visit is one request about one queue.
type visit struct {
	*Handler
	w     http.ResponseWriter
	r     *http.Request
	ctx   context.Context //nolint:containedctx // of the request, with its limit
	name  string
	queue delayq.Queue
}

// reading serves a page of a queue.
func (h *Handler) reading(serve func(v *visit) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h.visit(w, r, serve); err != nil {
			h.fail(w, r, err)
		}
	}
}

// changing serves a form of a queue's page. The function that it calls asks for the right to its
// action with [visit.may].
func (h *Handler) changing(serve func(v *visit) error) http.HandlerFunc {
	return h.reading(func(v *visit) error {
		limit := int64(formLimit)
		if strings.HasSuffix(v.r.URL.Path, "/push") {
			limit = bodyLimit
		}
		v.r.Body = http.MaxBytesReader(v.w, v.r.Body, limit)
		var large *http.MaxBytesError
		switch err := v.r.ParseForm(); {
		case errors.As(err, &large):
			return &failure{http.StatusRequestEntityTooLarge, "The form is larger than " + count(limit) + " bytes."}
		case err != nil:
			return &failure{http.StatusBadRequest, "The form cannot be read."}
		}
		if err := v.csrf.check(v.r); err != nil {
			return &failure{http.StatusForbidden, "Rejected: " + err.Error()}
		}
		return serve(v)
	})
}

func (h *Handler) visit(w http.ResponseWriter, r *http.Request, serve func(v *visit) error) error {
	name, ok := fromSegment(r.PathValue("queue"))
	if !ok {
		return errNoQueue
	}
	if err := h.authorize(r, View, name); err != nil {
		if r.Method == http.MethodPost {
			h.report(Event{Request: r, Action: View, Queue: name, Err: err})
		}
		return &failure{http.StatusForbidden, "You may not see this queue: " + visible(err.Error())}
	}
	ctx, cancel := context.WithTimeout(r.Context(), pageLimit)
	defer cancel()
	q, release, err := h.handles.use(ctx, name)
	if err != nil {
		return err
	}
	defer release()
	return serve(&visit{h, w, r, ctx, name, q})
}

// may returns an error unless the user may do that to the queue.
func (v *visit) may(a Action) error {
	err := v.allowed(v.r, a, v.queue, v.name)
	if err == nil {
		return nil
	}
	v.tell(a, nil, 0, err)
	return &failure{http.StatusForbidden, "Not done: " + visible(err.Error()) + "."}
}

// tell reports a change to the log and to the user's function.
func (v *visit) tell(a Action, ids []string, done int, err error) {
	v.report(Event{Request: v.r, Action: a, Queue: v.name, IDs: ids, Done: done, Err: err})
}

func (h *Handler) report(e Event) {
	log := h.log.With("action", string(e.Action), "queue", e.Queue, "messages", len(e.IDs), "done", e.Done, "from", e.Request.RemoteAddr)
	if len(e.IDs) == 1 {
		log = log.With("id", e.IDs[0])
	}
	if e.Err != nil {
		log.Warn("delayq dashboard: a change failed", "error", e.Err)
	} else {
		log.Info("delayq dashboard: a change")
	}
	if h.audit != nil {
		h.audit(e)
	}
}

// fail shows an error.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	var f *failure
	switch {
	case errors.As(err, &f):
	case errors.Is(err, errNoQueue):
		f = &failure{http.StatusNotFound, "There is no such queue."}
	case errors.Is(err, delayq.ErrNotFound):
		f = &failure{http.StatusNotFound, "There is no message of that id: it is done, cancelled or deleted, or has never been there."}
	case errors.Is(err, delayq.ErrUnsupported):
		f = &failure{http.StatusNotImplemented, "This store cannot do that: " + short(err.Error(), 300)}
	case errors.Is(err, delayq.ErrInvalid):
		f = &failure{http.StatusBadRequest, short(err.Error(), 300)}
	case r.Context().Err() != nil: // the user has left
		return
	default:
		h.log.Log(r.Context(), slog.LevelWarn, "delayq dashboard: a page failed", "error", err)
		f = &failure{http.StatusBadGateway, "The store did not do that: " + short(err.Error(), 300)}
	}
	h.render(w, r, f.status, "failure", &page{Title: "Not shown", Data: f.text})
}

// path returns the path of a page of the visit's queue, relative to the dashboard's root.
func (v *visit) path(rest ...string) string {
	return strings.Join(append([]string{"queues", segment(v.name)}, rest...), "/")
}

// goTo sends the browser to a page, which shows the notice.
func (v *visit) goTo(to string, query url.Values, notice string) {
	if query == nil {
		query = url.Values{}
	}
	if notice != "" {
		query.Set("notice", v.notices.add(notice))
	}
	if len(query) > 0 {
		to += "?" + query.Encode()
	}
	redirect(v.w, root(v.r)+to)
}

// root is the way from a page to the root of the dashboard. It needs no prefix.
func root(r *http.Request) string {
	depth := strings.Count(r.URL.EscapedPath(), "/") - 1
	if depth < 1 {
		return "./"
	}
	return strings.Repeat("../", depth)
}
