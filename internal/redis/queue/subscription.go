package queue

import (
	"context"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
)

// The client library subscribes under a lock of its own, and ignores the context while a server
// does not reply. So one goroutine follows the hub's channels, and no call waits for it.

// subscribe has a channel subscribed to. The queue claims again once that is done.
func (h *Hub) subscribe(channel string, log *slog.Logger) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.channels[channel] = log
	h.changedLocked()
}

func (h *Hub) unsubscribe(channel string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.channels, channel)
	h.changedLocked()
}

// changedLocked starts the subscription, or tells it that channels have changed.
func (h *Hub) changedLocked() {
	if !h.running {
		h.running = true
		var ctx context.Context
		ctx, h.stop = context.WithCancel(context.Background())
		h.ended.Go(func() { h.follow(ctx) })
	}
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

// checkEvery is how often a silent subscription is checked: rarely, since it carries only hints.
const checkEvery = time.Minute

// Events returns a subscription's events, which tell of each reconnect too.
func Events(p *redis.PubSub) <-chan any {
	return p.ChannelWithSubscriptions(redis.WithChannelHealthCheckInterval(checkEvery))
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
		if h.channels[channel] == nil {
			removed = append(removed, channel)
			delete(subscribed, channel)
		}
	}
	for channel, its := range h.channels {
		if !subscribed[channel] {
			added, log = append(added, channel), its
			subscribed[channel] = true
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
