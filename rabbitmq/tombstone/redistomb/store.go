// Package redistomb keeps tombstones for package rabbitmq in Redis 6 or newer, with Sentinel or
// Cluster too. All processes of a queue share them. It is a package of its own so that package
// rabbitmq does not import a Redis client.
//
// A queue's records are the keys PREFIX:{VHOST:QUEUE}:ID, percent-encoded within the braces, and
// its last stamp is PREFIX:{VHOST:QUEUE}. All are in one slot of a Cluster, and all expire by
// themselves. A record takes 200 to 250 bytes. There is one for each cancellation that is
// remembered, for each message in flight, and for each recently settled message. A push of up to
// 500 messages is one script, as is taking, settling or cancelling as many.
//
// A cancellation is undone when Redis loses its record. Redis must not evict keys (maxmemory-policy
// noeviction) and should persist (appendonly yes). A failover may lose the latest cancellations.
package redistomb

import (
	"context"
	"embed"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/script"
	"github.com/delayq/delayq/rabbitmq"
)

//go:embed lua/*.lua
var files embed.FS

var (
	enrollScript  = script.Load(files, "enroll")
	cancelScript  = script.Load(files, "cancel")
	takeScript    = script.Load(files, "take")
	releaseScript = script.Load(files, "release")
	settleScript  = script.Load(files, "settle")
)

// Store is a store in Redis. It is safe for concurrent use. With a client that has
// ContextTimeoutEnabled, calls end with their contexts. Otherwise they may wait for the client's
// own timeouts.
type Store struct {
	client redis.UniversalClient
	prefix string
	err    error // of an option
}

var _ rabbitmq.Tombstones = (*Store)(nil)

// An Option configures a store in [New]. Every call returns the error of an invalid option.
type Option func(*Store)

// DefaultPrefix is the default of [Prefix].
const DefaultPrefix = "delayq-tombstones"

// Prefix sets the prefix of all keys. The default is "delayq-tombstones". Brokers that share a
// Redis need one each, unless their virtual hosts have different names.
func Prefix(p string) Option {
	return func(s *Store) {
		if p == "" || len(p) > 64 || strings.ContainsAny(p, "{}\x00") {
			s.err = backend.Invalid("redistomb.Prefix", p, "1 to 64 bytes without braces")
		}
		s.prefix = p
	}
}

// New returns a store on a client of a server, a Sentinel or a Cluster. It sends nothing yet. The
// caller closes the client.
func New(client redis.UniversalClient, opts ...Option) *Store {
	s := &Store{client: client, prefix: DefaultPrefix}
	if client == nil {
		s.err = backend.Invalid("redistomb.New", nil, "a client")
	}
	for _, set := range opts {
		set(s)
	}
	return s
}

// clock is the key of a queue's last stamp. Encoded queue names have no braces, so the keys of two
// queues differ. A Cluster ignores braces without content.
func (s *Store) clock(queue string) string {
	if queue == "" {
		return s.prefix + ":{%}"
	}
	return s.prefix + ":{" + url.PathEscape(queue) + "}"
}

// run runs a script on the records of some ids.
func (s *Store) run(ctx context.Context, sc *script.Script, queue string, ids []string, args ...any) ([]any, error) {
	clock := s.clock(queue)
	keys := make([]string, 1, 1+len(ids))
	keys[0] = clock
	for _, id := range ids {
		keys = append(keys, clock+":"+id)
	}
	r := script.Runner{Client: s.client, Keys: keys}
	reply, err := r.Run(ctx, sc, args...)
	if err != nil {
		return nil, err
	}
	replies, ok := reply.([]any)
	if !ok || len(replies) != len(ids) {
		return nil, script.Unexpected(sc, reply)
	}
	return replies, nil
}

// batched runs a script on a few hundred items at a time. It fails with the first failure.
func batched[T any](s *Store, items []T, run func([]T) error) error {
	if s.err != nil {
		return s.err
	}
	for len(items) > 0 {
		n := min(len(items), script.ChunkMessages)
		if err := run(items[:n]); err != nil {
			return err
		}
		items = items[n:]
	}
	return nil
}

// Enroll is as in rabbitmq.Tombstones.
func (s *Store) Enroll(ctx context.Context, queue string, ids []string) ([]int64, error) {
	stamps := make([]int64, 0, len(ids))
	err := batched(s, ids, func(ids []string) error {
		replies, err := s.run(ctx, enrollScript, queue, ids)
		for _, r := range replies {
			stamps = append(stamps, script.Int(r))
		}
		return err
	})
	return stamps, err
}

// Cancel is as in rabbitmq.Tombstones.
func (s *Store) Cancel(ctx context.Context, queue string, ids []string, keep time.Duration) []error {
	if s.err != nil {
		return backend.FailAll(len(ids), s.err)
	}
	return script.Chunked(ids, script.Small[string], func(ids []string) []error {
		replies, err := s.run(ctx, cancelScript, queue, ids, ms(keep))
		if err != nil {
			return backend.FailAll(len(ids), err)
		}
		errs := make([]error, len(ids))
		for i, r := range replies {
			errs[i] = script.Waited(r)
		}
		return errs
	})
}

// Take is as in rabbitmq.Tombstones.
func (s *Store) Take(ctx context.Context, queue string, hs []rabbitmq.Hold, lasts time.Duration) ([]bool, error) {
	cancelled := make([]bool, 0, len(hs))
	err := s.each(ctx, takeScript, queue, hs, lasts, func(reply any) { cancelled = append(cancelled, reply == int64(1)) })
	return cancelled, err
}

// Release is as in rabbitmq.Tombstones.
func (s *Store) Release(ctx context.Context, queue string, hs []rabbitmq.Hold) error {
	return s.each(ctx, releaseScript, queue, hs, 0, func(any) {})
}

// Settle is as in rabbitmq.Tombstones.
func (s *Store) Settle(ctx context.Context, queue string, hs []rabbitmq.Hold, keep time.Duration) error {
	return s.each(ctx, settleScript, queue, hs, keep, func(any) {})
}

// each runs a script with a duration, and the stamp and token of each hold.
func (s *Store) each(ctx context.Context, sc *script.Script, queue string, hs []rabbitmq.Hold, d time.Duration, see func(any)) error {
	return batched(s, hs, func(hs []rabbitmq.Hold) error {
		ids, args := make([]string, len(hs)), make([]any, 0, 1+2*len(hs))
		args = append(args, ms(d))
		for i, h := range hs {
			ids[i], args = h.ID, append(args, h.Stamp, h.Token)
		}
		replies, err := s.run(ctx, sc, queue, ids, args...)
		for _, r := range replies {
			see(r)
		}
		return err
	})
}

// ms returns a duration in milliseconds, rounded up.
func ms(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }
