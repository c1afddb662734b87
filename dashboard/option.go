package dashboard

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/delayq/delayq"
)

// Option sets up a [Handler] in [New].
type Option func(*Handler) error

// Authorize decides who may do what: f returns nil to allow the action, and otherwise an error,
// whose text the user sees. queue is "" for the page of all queues, which then shows those that f
// allows to [View]. The handler calls f several times for a page, to offer only what is allowed, and
// again before each change. f must be fast and safe for concurrent use.
//
// Without Authorize the handler serves only requests from the machine itself, and is read-only.
func Authorize(f func(r *http.Request, action Action, queue string) error) Option {
	return func(h *Handler) error {
		h.authorize = f
		return given("Authorize", f != nil)
	}
}

// ReadOnly takes all actions away but [View].
func ReadOnly() Option {
	return func(h *Handler) error {
		h.readOnly = "the dashboard is read-only"
		return nil
	}
}

// Redact changes what the pages show of a message, such as its body, its headers and the reason of
// its death. m is a copy, whose Body and Headers f may also change in place. f is called for each
// message before anything is shown, downloaded or filtered. It must be safe for concurrent use.
func Redact(f func(queue string, m *delayq.MessageInfo)) Option {
	return func(h *Handler) error {
		h.redact = f
		return given("Redact", f != nil)
	}
}

// Audit is told of each change after it was made, had failed, or was rejected by [Authorize] or
// [ReadOnly]. Forms without a token of the dashboard, and forms with mistakes, are no changes of a
// user. f must be safe for concurrent use, and the page waits for it.
func Audit(f func(Event)) Option {
	return func(h *Handler) error {
		h.audit = f
		return given("Audit", f != nil)
	}
}

// WithLogger sets where the handler logs changes and failures, by default [slog.Default]. It logs
// ids, and no bodies.
func WithLogger(l *slog.Logger) Option {
	return func(h *Handler) error {
		h.log = l
		return given("WithLogger", l != nil)
	}
}

func given(option string, is bool) error {
	if is {
		return nil
	}
	return fmt.Errorf("dashboard: %s: %w", option, errors.New("nil; leave the option out instead"))
}
