// Package setup has the options and URLs that the backends on Redis share. For zsetpoll and
// keyspace it also joins the message store and the handles.
package setup

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/call"
	"github.com/delayq/delayq/internal/redis/queue"
	"github.com/delayq/delayq/internal/redis/script"
	"github.com/delayq/delayq/internal/redis/shard"
	"github.com/delayq/delayq/internal/redis/store"
)

// Config holds the options of zsetpoll and keyspace.
type Config struct {
	queue.Config
	Prefix  string              // of all keys
	Confirm script.Confirmation // replicas or disks that a push waits for
	Shards  int                 // of each queue; a power of two

	// Claimer chooses how a queue's messages are claimed, without shards. It is nil for a script.
	Claimer func(*store.Store) queue.Claimer
}

// Default returns the configuration of a backend of that name without options.
func Default(name string, client redis.UniversalClient) Config {
	return Config{
		Config: queue.Config{Name: name, Client: client, Poll: queue.DefaultPoll},
		Prefix: "delayq", Shards: 1,
	}
}

// SetPrefix sets the prefix of all keys.
func (c *Config) SetPrefix(prefix string) {
	c.Reject(store.ValidPrefix(prefix))
	c.Prefix = prefix
}

// SetConfirm makes pushes wait. The option's name is for the error.
func (c *Config) SetConfirm(option string, to script.Confirmation) {
	c.Reject(to.Valid(option))
	c.Confirm = to
}

// SetShards sets the number of shards of each queue. The option's name is for the error.
func (c *Config) SetShards(option string, n int) {
	c.Reject(shard.Valid(option, n))
	c.Shards = n
}

// Traits returns the promises of a backend of this configuration.
func (c *Config) Traits() backend.Traits {
	t := backend.Traits{Name: c.Name, Lacks: backend.Lacking(backend.Transactions), Resolution: script.Resolution, Sweep: c.Poll}
	if c.Shards > 1 { // each shard has an order, and is looked at in its turn
		t.Lacks, t.Disorder = t.Lacks.With(backend.Ordering), shard.Disorder
		t.Sweep = shard.Sweep(c.Poll, c.Shards)
	}
	return t
}

// Backend returns a backend whose messages are in sorted sets and hashes. It sends nothing before
// the first Open.
func Backend(c Config) *queue.Backend {
	c.Calls = new(call.Group)
	c.Registry = store.RegistryOf(c.Prefix)
	c.Keys = func(queue string) []string { return store.KeysOf(c.Prefix, queue) }
	c.KeyOf = func(key, queue string) bool {
		return store.Owns(c.Prefix, queue, key) && !store.IsCounts(key) && !store.IsNote(key)
	}
	var b *queue.Backend
	c.Source = func(ctx context.Context, name string, o backend.Options) (queue.Source, error) {
		stores := store.Config{
			Client: c.Client, Calls: c.Calls, Prefix: c.Prefix,
			Triggered: c.Triggered, Confirm: c.Confirm, Log: o.Logger,
		}
		s := store.New(stores, name, o.Clock)
		if err := s.CanConfirm(ctx); err != nil {
			return queue.Source{}, err
		}
		source := queue.Source{Clock: o.Clock, Triggered: c.Triggered && o.Clock == nil}
		if c.Claimer != nil {
			if split, _ := s.Split(ctx); split { // where the server does not reply, pushes find out
				return queue.Source{}, store.ErrSplit
			}
			source.Messages, source.Claim, source.Count = s, c.Claimer(s), s.Count
			return source, nil
		}
		q, err := shard.New(ctx, shard.Config{
			Calls: c.Calls, Log: o.Logger, Poll: c.Poll, Clock: o.Clock,
			Wake:     func(due time.Time) { b.Hub().Wake(s.Channel(), due) },
			Follow:   func(channel string) { b.Hub().Also(s.Channel(), channel) },
			Unfollow: func(channel string) { b.Hub().NoMore(s.Channel(), channel) },
		}, stores, name)
		if err != nil {
			return queue.Source{}, err
		}
		source.Messages, source.Claim, source.Count, source.More, source.Woken = q, q.Claim, q.Count, q.Channels, q.Woken
		source.Begin = func(ctx context.Context) error { return q.Begin(ctx, c.Shards) }
		source.Close = q.Close
		source.Remove, source.Reshard = q.Remove, q.Reshard
		return source, nil
	}
	b = queue.NewBackend(c.Config)
	return b
}

// Apply applies options to a configuration, and returns the error of a nil option. The error names
// the backend and its options.
func Apply[C any, Option ~func(*C)](to *C, opts []Option, name, allowed string) error {
	var errs []error
	for _, set := range opts {
		if set == nil {
			errs = append(errs, backend.Invalid(name+" option", nil, allowed))
			continue
		}
		set(to)
	}
	return errors.Join(errs...)
}
