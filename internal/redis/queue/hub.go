package queue

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Hub is the one subscription that all queues of a backend share. Wake-ups are hints: one that is lost
// costs the interval at most.
type Hub struct {
	client redis.UniversalClient
	poll   time.Duration

	triggered bool // who waits is woken by the trigger where there is one

	mu      sync.Mutex
	queues  map[string]map[*Queue]struct{} // by channel
	open    int
	running bool // the subscription
	stop    context.CancelFunc
	changed chan struct{} // holds one when channels came or went
	ended   sync.WaitGroup
}

// NewHub returns a hub whose queues look by themselves after poll, when no wake-up comes.
func NewHub(client redis.UniversalClient, poll time.Duration) *Hub {
	return &Hub{client: client, poll: poll, queues: make(map[string]map[*Queue]struct{}), changed: make(chan struct{}, 1)}
}

// queuesPerSecond bounds what idle queues cost together.
const queuesPerSecond = 100

// interval is how long an idle queue sleeps: longer when there are very many.
func (h *Hub) interval() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(h.poll, time.Duration(h.open)*time.Second/queuesPerSecond)
}

// add has a queue woken from soon on: once its channel is subscribed to, it looks again.
func (h *Hub) add(q *Queue) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open++
	channel := q.Channel()
	if h.queues[channel] != nil {
		h.queues[channel][q] = struct{}{}
		return
	}
	h.queues[channel] = map[*Queue]struct{}{q: {}}
	h.followLocked()
}

// checkEvery is how often a silent subscription is checked to be alive: rarely, since it is only for hints.
const checkEvery = time.Minute

// Events are those of a subscription, the ends of disconnects among them.
func Events(p *redis.PubSub) <-chan any {
	return p.ChannelWithSubscriptions(redis.WithChannelHealthCheckInterval(checkEvery))
}

// heard passes a wake-up on. After a subscription, also one anew, wake-ups may have been missed.
func (h *Hub) heard(event any) {
	switch e := event.(type) {
	case *redis.Subscription:
		h.nudge(e.Channel, time.Time{})
	case *redis.Message:
		due, trigger, _ := strings.Cut(e.Payload, " ")
		if ms, err := strconv.ParseInt(due, 10, 64); err == nil && (trigger == "" || !h.triggered) {
			h.nudge(e.Channel, time.UnixMilli(ms))
		}
	}
}

// Wake makes the queues of a channel look at once.
func (h *Hub) Wake(channel string) { h.nudge(channel, time.Time{}) }

// WakeAll makes all queues look at once.
func (h *Hub) WakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, queues := range h.queues {
		for q := range queues {
			q.nudge(time.Time{})
		}
	}
}

func (h *Hub) nudge(channel string, due time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for q := range h.queues[channel] {
		q.nudge(due)
	}
}

func (h *Hub) remove(q *Queue) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open--
	channel := q.Channel()
	delete(h.queues[channel], q)
	if len(h.queues[channel]) == 0 {
		delete(h.queues, channel)
		h.followLocked()
	}
}
