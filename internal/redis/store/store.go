package store

import (
	"context"
	"log/slog"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/internal/redis/queue"
	"github.com/delayq/delayq/internal/redis/script"
)

// Resolution is that of due times and leases: scores are whole milliseconds.
const Resolution = time.Millisecond

// Store is one queue's messages. It is safe for concurrent use; every method is one script or, for
// large batches, a few.
type Store struct {
	script.Runner
	pushes *script.Runner // with what these wait for
	keys   keys
	log    *slog.Logger
}

// New returns the store of a queue. A clock replaces the server's own.
func New(c Config, queue string, clock clockwork.Clock) *Store {
	k := newKeys(c.Prefix, queue)
	trigger := ""
	if c.Triggered && clock == nil { // an injected clock's time is not that of expiries
		trigger = k.trigger
	}
	scripts := script.Runner{Client: c.Client, Calls: c.Calls, Keys: k.list, Clock: clock, Args: []any{k.channel, trigger}}
	return &Store{Runner: scripts, pushes: scripts.Confirmed(c.Confirm), keys: k, log: slog.New(slog.DiscardHandler)}
}

// logTo has the store log what no caller is told.
func (s *Store) logTo(log *slog.Logger) {
	s.log = log
	s.Warn = func(err string) {
		log.Warn("delayq: what was stored could not be announced; workers find it at their next look", "err", err)
	}
	s.pushes.Warn = s.Warn
}

var _ queue.Messages = (*Store)(nil)

func (s *Store) byID(ctx context.Context, sc *script.Script, ids []string, outcome func(any) error) []error {
	return script.Chunked(ids, script.Small, func(part []string) []error {
		return script.Each(ctx, &s.Runner, sc, part, nil, func(args []any, id string) []any { return append(args, packed(id)) }, outcome)
	})
}
