package handle

import (
	"log/slog"
	"slices"
	"sync"
	"time"
)

// A Hub wakes the handles of one backend. Its zero value needs a Poll. It is safe for concurrent use.
type Hub struct {
	// Poll is how long an idle handle sleeps without a wake-up. Where there are many handles, they
	// sleep longer, so that all together claim 98 times a second; but not longer than MaxPoll, unless
	// that is zero.
	Poll, MaxPoll time.Duration

	// Go starts a fetcher, for a backend that waits for its goroutines when it closes. Nil is a plain
	// go statement.
	Go func(fetch func())

	// Follow is called when a name gets its first handle with a fetcher, and Unfollow when it has
	// lost its last, for a backend that subscribes to wake-ups. They may be nil. They are called
	// under a lock, in order; they neither block nor call the hub.
	Follow   func(name string, log *slog.Logger)
	Unfollow func(name string)

	mu      sync.Mutex
	handles map[string]map[*Queue]struct{} // that have a fetcher, by name
	open    int                            // all of these
}

// Wake tells the handles of a name that a message becomes due then, by the store's clock. For the
// zero time they look at once.
func (h *Hub) Wake(name string, due time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for q := range h.handles[name] {
		q.wakeBy(name, due)
	}
}

// WakeAll makes all handles look at once.
func (h *Hub) WakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, handles := range h.handles {
		for q := range handles {
			q.wakeBy(name, time.Time{})
		}
	}
}

// Handles returns how many handles have a fetcher, which a wake-up would reach.
func (h *Hub) Handles() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open
}

// perSecond bounds the claims a second of all idle handles together. A thousand queues look at their
// dead letters twice a second beside it, and are to cost 100 calls of the store.
const perSecond = 98

// interval is how long an idle handle sleeps. It grows with the number of handles.
func (h *Hub) interval() time.Duration {
	every := max(h.Poll, time.Duration(h.Handles())*time.Second/perSecond)
	if h.MaxPoll > 0 {
		every = min(every, h.MaxPoll)
	}
	return every
}

func (h *Hub) add(q *Queue) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open++
	if h.handles == nil {
		h.handles = make(map[string]map[*Queue]struct{})
	}
	h.followLocked(q, q.Name)
	if q.More != nil {
		for _, name := range q.More() {
			h.followLocked(q, name)
		}
	}
}

func (h *Hub) followLocked(q *Queue, name string) {
	if h.handles[name] == nil {
		h.handles[name] = make(map[*Queue]struct{})
		if h.Follow != nil {
			h.Follow(name, q.log)
		}
	}
	if _, follows := h.handles[name][q]; !follows {
		h.handles[name][q] = struct{}{}
		q.names = append(q.names, name)
	}
}

// Also has the handles of a name woken by one more.
func (h *Hub) Also(name, more string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for q := range h.handles[name] {
		h.followLocked(q, more)
	}
}

// NoMore undoes Also.
func (h *Hub) NoMore(name, more string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for q := range h.handles[name] {
		if at := slices.Index(q.names, more); at >= 0 {
			q.names = slices.Delete(q.names, at, at+1)
			h.unfollowLocked(q, more)
		}
	}
}

func (h *Hub) remove(q *Queue) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open--
	for _, name := range q.names {
		h.unfollowLocked(q, name)
	}
}

func (h *Hub) unfollowLocked(q *Queue, name string) {
	delete(h.handles[name], q)
	if len(h.handles[name]) > 0 {
		return
	}
	delete(h.handles, name)
	if h.Unfollow != nil {
		h.Unfollow(name)
	}
}
