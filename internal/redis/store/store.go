package store

import (
	"context"
	"log/slog"
	"slices"

	"github.com/jonboulle/clockwork"
	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/internal/redis/call"
	"github.com/delayq/delayq/internal/redis/script"
)

// Config holds the settings that a backend's stores share.
type Config struct {
	Client    redis.UniversalClient
	Calls     *call.Group         // of the backend
	Prefix    string              // of all keys
	Triggered bool                // a key expires when the first message is due
	Confirm   script.Confirmation // replicas or disks that a push waits for
	Log       *slog.Logger        // nil to discard
}

// Store is one queue's messages. It is safe for concurrent use. Every method runs one script or,
// for a large batch, a few.
type Store struct {
	script.Runner
	script.Pausing
	note   script.Runner  // has the key of the shards alone
	pushes *script.Runner // has that key too, and waits for the confirmation
	layout *script.Runner // the same, with the key of the pause
	counts script.Runner  // has the keys of the counts and the shards too
	keys   keys
}

// New returns the store of a queue. A clock replaces the server's own.
func New(c Config, queue string, clock clockwork.Clock) *Store {
	k := newKeys(c.Prefix, queue)
	trigger := ""
	if c.Triggered && clock == nil { // keys expire by the server's clock
		trigger = k.trigger
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	scripts := script.Runner{
		Client: c.Client, Calls: c.Calls, Keys: k.list, Clock: clock, Log: c.Log, Args: []any{k.channel, trigger},
	}
	counts := scripts
	counts.Keys = slices.Concat(k.list, []string{k.counts, k.split})
	note, pushes, layout := scripts, scripts, scripts
	note.Keys = []string{k.split}
	pushes.Keys = slices.Concat(k.list, []string{k.split})
	layout.Keys = append(slices.Clone(pushes.Keys), k.paused)
	return &Store{
		Runner: scripts, Pausing: script.NewPausing(counts, k.paused, k.channel), note: note,
		pushes: pushes.Confirmed(c.Confirm), layout: layout.Confirmed(c.Confirm), counts: counts, keys: k,
	}
}

// CanConfirm returns the error of a confirmation that the server cannot give.
func (s *Store) CanConfirm(ctx context.Context) error { return s.pushes.CanConfirm(ctx) }

func (s *Store) byID(ctx context.Context, sc *script.Script, ids []string, outcome func(any) error) []error {
	return script.Chunked(ids, script.Small, func(part []string) []error {
		return script.Each(ctx, &s.Runner, sc, part, nil, func(args []any, id string) []any { return append(args, packed(id)) }, outcome)
	})
}
