package redisson

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/script"
)

// given is how the scripts know a lease: by the message's key and a stamp, its number and when it was to end first. A repeated script that does not
// find it any more, before that time, knows that the first try has settled it.
func (s *store) given(l backend.Lease) (key, stamp []byte) {
	id, _ := s.identify(l.ID) // what names nothing has no lease either
	stamp = binary.BigEndian.AppendUint64(make([]byte, 0, stampLen), l.Token.Hi)
	return id.key, binary.BigEndian.AppendUint64(stamp, l.Token.Lo)
}

// Ack is as in backend.Queue.
func (s *store) Ack(ctx context.Context, ls []backend.Lease) []error {
	return settle(ctx, s, ackScript, ls, func(args []any, l backend.Lease) []any {
		key, stamp := s.given(l)
		return append(args, key, stamp)
	})
}

// Nack is as in backend.Queue.
func (s *store) Nack(ctx context.Context, rs []backend.Return) []error {
	return settle(ctx, s, nackScript, rs, func(args []any, r backend.Return) []any {
		key, stamp := s.given(r.Lease)
		return append(args, key, stamp, script.Delay(r.Delay), script.Flag(r.Untouched))
	})
}

// Dead is as in backend.Queue.
func (s *store) Dead(ctx context.Context, bs []backend.Burial) []error {
	return settle(ctx, s, buryScript, bs, func(args []any, b backend.Burial) []any {
		key, stamp := s.given(b.Lease)
		return append(args, key, stamp, b.Reason)
	})
}

func settle[T any](ctx context.Context, s *store, sc *script.Script, items []T, args func([]any, T) []any) []error {
	return script.Chunked(items, script.Small, func(part []T) []error {
		return script.Each(ctx, &s.Runner, sc, part, nil, args, script.OneOr(backend.ErrLeaseLost))
	})
}

// Extend is as in backend.Queue.
func (s *store) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	ends := make([]time.Time, 0, len(ls))
	errs := script.Chunked(ls, script.Small, func(part []backend.Lease) []error {
		after := len(ends) + len(part)
		errs := script.Each(ctx, &s.Runner, extendScript, part, []any{script.Delay(lease)}, func(args []any, l backend.Lease) []any {
			key, stamp := s.given(l)
			return append(args, key, stamp)
		}, func(reply any) error {
			ends = append(ends, script.MS(reply))
			if ends[len(ends)-1].IsZero() {
				return backend.ErrLeaseLost
			}
			return nil
		})
		ends = append(ends, make([]time.Time, after-len(ends))...) // when there was no reply
		return errs
	})
	return ends, errs
}
