package redisstore

import (
	"context"
	"time"

	"github.com/delayq/delayq/backend"
)

// Ack is as in backend.Queue.
func (s *Store) Ack(ctx context.Context, ls []backend.Lease) []error {
	return chunked(ls, small, func(part []backend.Lease) []error {
		return each(ctx, s, ackScript, part, nil, func(args []any, l backend.Lease) []any {
			return append(args, memberOf(l))
		}, oneOr(backend.ErrLeaseLost))
	})
}

// Nack is as in backend.Queue.
func (s *Store) Nack(ctx context.Context, rs []backend.Return) []error {
	return chunked(rs, small, func(part []backend.Return) []error {
		return each(ctx, s, nackScript, part, nil, func(args []any, r backend.Return) []any {
			return append(args, memberOf(r.Lease), delayArg(r.Delay), flag(r.Untouched))
		}, oneOr(backend.ErrLeaseLost))
	})
}

// Dead is as in backend.Queue.
func (s *Store) Dead(ctx context.Context, bs []backend.Burial) []error {
	return chunked(bs, func(b backend.Burial) int { return len(b.Reason) }, func(part []backend.Burial) []error {
		return each(ctx, s, buryScript, part, nil, func(args []any, b backend.Burial) []any {
			return append(args, memberOf(b.Lease), b.Reason)
		}, oneOr(backend.ErrLeaseLost))
	})
}

// Extend is as in backend.Queue.
func (s *Store) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	ends := make([]time.Time, 0, len(ls))
	errs := chunked(ls, small, func(part []backend.Lease) []error {
		after := len(ends) + len(part)
		errs := each(ctx, s, extendScript, part, []any{delayArg(lease)}, func(args []any, l backend.Lease) []any {
			return append(args, memberOf(l))
		}, func(reply any) error {
			ends = append(ends, parseMS(reply))
			if ends[len(ends)-1].IsZero() {
				return backend.ErrLeaseLost
			}
			return nil
		})
		ends = ends[:after] // also when there was no reply
		return errs
	})
	return ends, errs
}
