package queue

import (
	"context"
	"log/slog"

	"github.com/redis/go-redis/v9"
)

// The client library subscribes under a lock of its own, and looks at no context while a server does not answer. So one goroutine
// follows the hub's channels, and nobody waits for it.

// followLocked has the subscription follow the channels.
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
			h.heard(e)
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

// update subscribes to what is new, and leaves what is over. What fails is subscribed to when the connection is made anew.
func (h *Hub) update(ctx context.Context, pubsub *redis.PubSub, subscribed map[string]bool) {
	came, went, log := h.difference(subscribed)
	if len(came) > 0 {
		if err := pubsub.Subscribe(ctx, came...); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "delayq: subscribing to wake-ups failed; queues look at their interval", "err", err)
		}
	}
	if len(went) > 0 {
		_ = pubsub.Unsubscribe(ctx, went...) // without a connection there is nothing to leave
	}
}

// difference notes the channels, and returns which came and which went, and the logger of one that came.
func (h *Hub) difference(subscribed map[string]bool) (came, went []string, log *slog.Logger) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for channel := range subscribed {
		if h.queues[channel] == nil {
			went = append(went, channel)
			delete(subscribed, channel)
		}
	}
	for channel, queues := range h.queues {
		if subscribed[channel] {
			continue
		}
		came = append(came, channel)
		subscribed[channel] = true
		for q := range queues {
			log = q.log
		}
	}
	return came, went, log
}

// Close ends the subscription. It waits for a server that is being asked.
func (h *Hub) Close() {
	h.mu.Lock()
	stop := h.stop
	h.mu.Unlock()
	if stop != nil {
		stop()
	}
	h.ended.Wait()
}
