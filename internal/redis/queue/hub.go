package queue

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Hub is the subscription that all queues of a backend share. Wake-ups are hints: a lost one makes
// a message late by the interval at most.
type Hub struct {
	client redis.UniversalClient
	poll   time.Duration

	triggered bool // where a trigger is set, it wakes the queues

	mu      sync.Mutex
	queues  map[string]map[*Queue]struct{} // by channel
	open    int
	running bool // the subscription
	stop    context.CancelFunc
	changed chan struct{} // holds one when a channel was added or removed
	ended   sync.WaitGroup
}

// NewHub returns a hub whose queues claim after poll when no wake-up comes.
func NewHub(client redis.UniversalClient, poll time.Duration) *Hub {
	return &Hub{client: client, poll: poll, queues: make(map[string]map[*Queue]struct{}), changed: make(chan struct{}, 1)}
}

// queuesPerSecond bounds the claims a second of all idle queues together.
const queuesPerSecond = 100

// interval is how long an idle queue sleeps. It grows with the number of open queues.
func (h *Hub) interval() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(h.poll, time.Duration(h.open)*time.Second/queuesPerSecond)
}

// add subscribes to a queue's channel. The queue claims again once that is done.
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

// checkEvery is how often a silent subscription is checked: rarely, since it carries only hints.
const checkEvery = time.Minute

// Events returns a subscription's events, which tell of each reconnect too.
func Events(p *redis.PubSub) <-chan any {
	return p.ChannelWithSubscriptions(redis.WithChannelHealthCheckInterval(checkEvery))
}

// handle passes a wake-up on. Before a subscription, which may follow a disconnect, wake-ups may
// have been missed.
func (h *Hub) handle(event any) {
	switch e := event.(type) {
	case *redis.Subscription:
		h.Wake(e.Channel)
	case *redis.Message:
		due, trigger, _ := strings.Cut(e.Payload, " ")
		if ms, err := strconv.ParseInt(due, 10, 64); err == nil && (trigger == "" || !h.triggered) {
			h.wake(e.Channel, time.UnixMilli(ms))
		}
	}
}

// Wake makes the queues of a channel claim at once.
func (h *Hub) Wake(channel string) { h.wake(channel, time.Time{}) }

// WakeAll makes all queues claim at once.
func (h *Hub) WakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, queues := range h.queues {
		for q := range queues {
			q.wake(time.Time{})
		}
	}
}

func (h *Hub) wake(channel string, due time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for q := range h.queues[channel] {
		q.wake(due)
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
