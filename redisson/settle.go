package redisson

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/script"
)

// given returns a lease's identity in scripts: the message's key and a stamp, which is the lease's
// number and its first end. A repeated script that does not find the lease before that end knows
// that the first try settled it.
func (s *store) given(l backend.Lease) (key, stamp []byte) {
	id, _ := s.identify(l.ID) // an id of no message has no lease either
	stamp = binary.BigEndian.AppendUint64(make([]byte, 0, stampLen), l.Token.Hi)
	return id.key, binary.BigEndian.AppendUint64(stamp, l.Token.Lo)
}

// leaseArgs appends a lease's identity.
func (s *store) leaseArgs(args []any, l backend.Lease) []any {
	key, stamp := s.given(l)
	return append(args, key, stamp)
}

// Ack is as in backend.Queue.
func (s *store) Ack(ctx context.Context, ls []backend.Lease) []error {
	return settle(ctx, s, ackScript, ls, s.leaseArgs)
}

// Nack is as in backend.Queue.
func (s *store) Nack(ctx context.Context, rs []backend.Return) []error {
	return settle(ctx, s, nackScript, rs, func(args []any, r backend.Return) []any {
		return append(s.leaseArgs(args, r.Lease), script.Delay(r.Delay), script.Flag(r.Untouched))
	})
}

// Dead is as in backend.Queue.
func (s *store) Dead(ctx context.Context, bs []backend.Burial) []error {
	return settle(ctx, s, deadScript, bs, func(args []any, b backend.Burial) []any {
		return append(s.leaseArgs(args, b.Lease), b.Reason)
	})
}

func settle[T any](ctx context.Context, s *store, sc *script.Script, items []T, args script.Args[T]) []error {
	return script.Chunked(items, script.Small, func(part []T) []error {
		return script.Each(ctx, &s.Runner, sc, part, nil, args, script.OneOr(backend.ErrLeaseLost))
	})
}

// Extend is as in backend.Queue.
func (s *store) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	return script.Extend(ctx, &s.Runner, extendScript, ls, lease, s.leaseArgs)
}
