package redisstore

import (
	"context"
	"strings"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/rediscall"
	"github.com/delayq/delayq/internal/redischeck"
	"github.com/delayq/delayq/internal/redisqueue"
	"github.com/delayq/delayq/internal/redisscript"
)

// Config is what the backends on this store have in common.
type Config struct {
	redisqueue.Config
	Prefix string // of all keys

	// Confirm is what a push waits for.
	Confirm redisscript.Confirmation

	// Claimer makes a queue's way to claim.
	Claimer func(*Store) redisqueue.Claimer
}

// DefaultPrefix is that of a Config.
const DefaultPrefix = "delayq"

// NewBackend returns a backend on such stores; nothing is sent before the first Open.
func NewBackend(c Config) *redisqueue.Backend {
	c.Calls = new(rediscall.Group)
	c.Check = redischeck.Check
	c.KeyOf = func(key, queue string) bool { return strings.HasPrefix(key, c.Prefix+":{"+queue+"}:") }
	c.Store = func(ctx context.Context, name string, o backend.Options) (redisqueue.Store, error) {
		s := New(c, name, o.Clock)
		s.logTo(o.Logger)
		if err := s.pushes.CanConfirm(ctx); err != nil {
			return redisqueue.Store{}, err
		}
		return redisqueue.Store{Messages: s, Claim: c.Claimer(s), Clock: o.Clock, Triggered: c.Triggered}, nil
	}
	return redisqueue.NewBackend(c.Config)
}

// Triggered returns the channel of the queue of which that key was the trigger.
func Triggered(key string) (channel string, ok bool) {
	queue, ok := strings.CutSuffix(key, "}:"+triggerKey)
	return queue + "}:" + wakeChannel, ok
}
