package queue

import (
	"context"
	"log/slog"

	"github.com/redis/go-redis/v9"
)

// The client library subscribes under a lock of its own, and ignores the context while a server
// does not reply. So one goroutine follows the hub's channels, and no call waits for it.

// followLocked starts the subscription, or tells it that channels have changed.
func (h *Hub) followLocked() {
	if !h.running {
		h.running = true
		var ctx context.Context
		ctx, h.stop = context.WithCancel(context.Background())
		h.ended.Go(func() { h.follow(ctx) })
	}
	signal(h.changed)
}

func (h *Hub) follow(ctx context.Context) {
	pubsub := h.client.Subscribe(ctx) // to nothing yet
	defer func() { _ = pubsub.Close() }()
	subscribed := make(map[string]bool)
	h.update(ctx, pubsub, subscribed)
	events := Events(pubsub)
	h.ended.Go(func() {
		for e := range events {
			h.handle(e)
		}
	})
	for {
		select {
		case <-h.changed:
			h.update(ctx, pubsub, subscribed)
		case <-ctx.Done():
			return
		}
	}
}

// update subscribes to new channels and unsubscribes from removed ones. A channel that fails is
// subscribed to at the next reconnect.
func (h *Hub) update(ctx context.Context, pubsub *redis.PubSub, subscribed map[string]bool) {
	added, removed, log := h.channelChanges(subscribed)
	if len(added) > 0 {
		if err := pubsub.Subscribe(ctx, added...); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "delayq: subscribing to wake-ups failed; queues poll at their interval", "err", err)
		}
	}
	if len(removed) > 0 {
		_ = pubsub.Unsubscribe(ctx, removed...) // without a connection there is no subscription
	}
}

// channelChanges notes the channels. It returns the new and the removed ones, and the logger of a
// new one.
func (h *Hub) channelChanges(subscribed map[string]bool) (added, removed []string, log *slog.Logger) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for channel := range subscribed {
		if h.queues[channel] == nil {
			removed = append(removed, channel)
			delete(subscribed, channel)
		}
	}
	for channel, queues := range h.queues {
		if subscribed[channel] {
			continue
		}
		added = append(added, channel)
		subscribed[channel] = true
		for q := range queues {
			log = q.log
		}
	}
	return added, removed, log
}

// Close ends the subscription. It waits for a call that is under way.
func (h *Hub) Close() {
	h.mu.Lock()
	stop := h.stop
	h.mu.Unlock()
	if stop != nil {
		stop()
	}
	h.ended.Wait()
}
