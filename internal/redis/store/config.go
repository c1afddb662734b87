package store

import (
	"context"
	"strings"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/call"
	"github.com/delayq/delayq/internal/redis/check"
	"github.com/delayq/delayq/internal/redis/queue"
	"github.com/delayq/delayq/internal/redis/script"
)

// Config is what the backends on this store have in common.
type Config struct {
	queue.Config
	Prefix string // of all keys

	// Confirm is what a push waits for.
	Confirm script.Confirmation

	// Claimer makes a queue's way to claim.
	Claimer func(*Store) queue.Claimer
}

// DefaultPrefix is that of a Config.
const DefaultPrefix = "delayq"

// NewBackend returns a backend on such stores; nothing is sent before the first Open.
func NewBackend(c Config) *queue.Backend {
	c.Calls = new(call.Group)
	c.Check = check.Check
	c.KeyOf = func(key, queue string) bool { return strings.HasPrefix(key, c.Prefix+":{"+queue+"}:") }
	c.Store = func(ctx context.Context, name string, o backend.Options) (queue.Store, error) {
		s := New(c, name, o.Clock)
		s.logTo(o.Logger)
		if err := s.pushes.CanConfirm(ctx); err != nil {
			return queue.Store{}, err
		}
		return queue.Store{Messages: s, Claim: c.Claimer(s), Clock: o.Clock, Triggered: c.Triggered}, nil
	}
	return queue.NewBackend(c.Config)
}

// Triggered returns the channel of the queue of which that key was the trigger.
func Triggered(key string) (channel string, ok bool) {
	queue, ok := strings.CutSuffix(key, "}:"+triggerKey)
	return queue + "}:" + wakeChannel, ok
}
