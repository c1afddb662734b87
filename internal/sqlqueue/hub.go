package sqlqueue

import (
	"sync"
	"time"
)

// A Hub wakes the handles of one backend. The zero value is ready. It is safe for concurrent use.
type Hub struct {
	mu      sync.Mutex
	handles map[string]map[*Queue]struct{} // that have a fetcher, by the queue's name
}

// Wake tells the handles on a queue that a message becomes due then, by the store's clock. For the
// zero time they look at once.
func (h *Hub) Wake(queue string, due time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for q := range h.handles[queue] {
		q.wake(due)
	}
}

// WakeAll makes the handles on all queues look at once.
func (h *Hub) WakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, handles := range h.handles {
		for q := range handles {
			q.wake(time.Time{})
		}
	}
}

// Listening reports whether any handle has a fetcher, which a wake-up would reach.
func (h *Hub) Listening() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.handles) > 0
}

func (h *Hub) add(q *Queue) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.handles == nil {
		h.handles = make(map[string]map[*Queue]struct{})
	}
	if h.handles[q.Name] == nil {
		h.handles[q.Name] = make(map[*Queue]struct{})
	}
	h.handles[q.Name][q] = struct{}{}
}

func (h *Hub) remove(q *Queue) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.handles[q.Name], q)
	if len(h.handles[q.Name]) == 0 {
		delete(h.handles, q.Name)
	}
}
