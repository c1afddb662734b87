package queue

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/internal/handle"
)

// Hub is the subscription that all queues of a backend share. A handle's name is its queue's
// channel. Wake-ups are hints: a lost one makes a message late by the interval at most.
type Hub struct {
	handle.Hub
	client    redis.UniversalClient
	triggered bool // where a trigger is set, it wakes the queues

	mu       sync.Mutex
	channels map[string]*slog.Logger // to be subscribed to
	running  bool                    // the subscription
	stop     context.CancelFunc
	changed  chan struct{} // holds one when a channel was added or removed
	ended    sync.WaitGroup
}

// NewHub returns a hub whose queues claim after poll when no wake-up comes.
func NewHub(client redis.UniversalClient, poll time.Duration) *Hub {
	h := &Hub{client: client, channels: make(map[string]*slog.Logger), changed: make(chan struct{}, 1)}
	h.Poll, h.Follow, h.Unfollow = poll, h.subscribe, h.unsubscribe
	return h
}

// handle passes a wake-up on. Before a subscription, which may follow a disconnect, wake-ups may
// have been missed.
func (h *Hub) handle(event any) {
	switch e := event.(type) {
	case *redis.Subscription:
		h.Wake(e.Channel, time.Time{})
	case *redis.Message:
		if due, ok := h.dueTime(e.Payload); ok {
			h.Wake(e.Channel, due)
		}
	}
}

// dueTime reads a wake-up. Where a trigger is set for the due time, the trigger wakes the queues.
func (h *Hub) dueTime(payload string) (due time.Time, ok bool) {
	text, trigger, _ := strings.Cut(payload, " ")
	ms, err := strconv.ParseInt(text, 10, 64)
	return time.UnixMilli(ms), err == nil && (trigger == "" || !h.triggered)
}
