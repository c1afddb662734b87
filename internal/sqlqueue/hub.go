package sqlqueue

import (
	"sync"
	"time"
)

// A Hub wakes the handles of one backend. The zero value is ready. It is safe for concurrent use.
type Hub struct {
	mu      sync.Mutex
	handles map[string]map[*Queue]struct{} // that have a fetcher, by the queue's name
	open    int                            // all of these
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

// Handles returns how many handles have a fetcher, which a wake-up would reach.
func (h *Hub) Handles() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, handles := range h.handles {
		n += len(handles)
	}
	return n
}

// handlesPerSecond bounds the claims a second of all idle handles together, up to longestSleep.
const (
	handlesPerSecond = 100
	longestSleep     = 10 * time.Second
)

// interval is how long an idle handle sleeps. It grows with the number of handles.
func (h *Hub) interval(least time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(least, min(time.Duration(h.open)*time.Second/handlesPerSecond, longestSleep))
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
	h.open++
}

func (h *Hub) remove(q *Queue) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.handles[q.Name], q)
	h.open--
	if len(h.handles[q.Name]) == 0 {
		delete(h.handles, q.Name)
	}
}
