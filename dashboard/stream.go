package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	streamsAtOnce = 500              // further browsers poll
	streamFor     = 5 * time.Minute  // then the browser connects again, and its rights are looked at again
	streamWrite   = 10 * time.Second // for a slow browser to read one event
	queuesShown   = 50               // on one page
	firstFigures  = time.Second      // a page waits for the first figures no longer
)

// watched returns the queues that a request for figures names and the user may see.
func (h *Handler) watched(r *http.Request) []string {
	var names []string
	for _, s := range r.URL.Query()["q"] {
		name, ok := fromSegment(s)
		if ok && len(names) < queuesShown && h.authorize(r, View, name) == nil && h.handles.has(r.Context(), name) == nil {
			names = append(names, name)
		}
	}
	return names
}

// figures replies with the current figures, for browsers that poll.
func (h *Handler) figures(w http.ResponseWriter, r *http.Request) {
	names := h.watched(r)
	if len(names) == 0 {
		http.Error(w, "no such queue", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(bySegment(h.snapshot(r.Context(), names)))
}

// snapshot returns the figures of queues. The charts are on the page of one queue.
func (h *Handler) snapshot(ctx context.Context, names []string) map[string]figures {
	ctx, cancel := context.WithTimeout(ctx, firstFigures)
	defer cancel()
	for _, name := range names {
		h.polls.of(name) // all begin at once
	}
	all := make(map[string]figures, len(names))
	for _, name := range names {
		all[name] = figuresOf(h.polls.wait(ctx, name), len(names) == 1)
	}
	return all
}

// bySegment has the queues under the names that the page's elements carry.
func bySegment(all map[string]figures) map[string]figures {
	out := make(map[string]figures, len(all))
	for name, f := range all {
		out[segment(name)] = f
	}
	return out
}

// events sends figures whenever they are counted anew, as server-sent events.
func (h *Handler) events(w http.ResponseWriter, r *http.Request) {
	names := h.watched(r)
	if len(names) == 0 {
		http.Error(w, "no such queue", http.StatusNotFound)
		return
	}
	select {
	case h.streams <- struct{}{}:
		defer func() { <-h.streams }()
	default:
		w.Header().Set("Retry-After", "30")
		http.Error(w, "too many browsers are connected: poll instead", http.StatusServiceUnavailable)
		return
	}
	control := http.NewResponseController(w)
	ctx, cancel := context.WithTimeout(r.Context(), streamFor)
	defer cancel()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // proxies hold events back otherwise
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		data, err := json.Marshal(bySegment(h.snapshot(ctx, names)))
		if err != nil || ctx.Err() != nil || h.ctx.Err() != nil {
			return
		}
		_ = control.SetWriteDeadline(time.Now().Add(streamWrite)) // a writer without deadlines has its own
		if _, err := fmt.Fprintf(w, "retry: 3000\ndata: %s\n\n", data); err != nil || control.Flush() != nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		case <-h.ctx.Done():
			return
		}
	}
}
