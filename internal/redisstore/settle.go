package redisstore

import (
	"context"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
	"github.com/delayq/delayq/internal/redisscript"
)

// Ack is as in backend.Queue.
func (s *Store) Ack(ctx context.Context, ls []backend.Lease) []error {
	return redisscript.Chunked(ls, redisscript.Small, func(part []backend.Lease) []error {
		return redisscript.Each(ctx, &s.Runner, ackScript, part, nil, func(args []any, l backend.Lease) []any {
			return append(args, tokenOf(l))
		}, redisscript.OneOr(backend.ErrLeaseLost))
	})
}

// Nack is as in backend.Queue.
func (s *Store) Nack(ctx context.Context, rs []backend.Return) []error {
	size := func(r backend.Return) int { return record.ContentSize(r.Headers, nil) }
	return redisscript.Chunked(rs, size, func(part []backend.Return) []error {
		return redisscript.Each(ctx, &s.Runner, nackScript, part, nil, func(args []any, r backend.Return) []any {
			return append(args, tokenOf(r.Lease), redisscript.Delay(r.Delay), howBack(&r))
		}, redisscript.OneOr(backend.ErrLeaseLost))
	})
}

// howBack tells the script how a message comes back, with the new headers if it has any.
func howBack(r *backend.Return) any {
	if r.NewHeaders {
		return record.AppendHeaders([]byte{'2'}, r.Headers)
	}
	return redisscript.Flag(r.Untouched)
}

// Dead is as in backend.Queue.
func (s *Store) Dead(ctx context.Context, bs []backend.Burial) []error {
	return redisscript.Chunked(bs, func(b backend.Burial) int { return len(b.Reason) }, func(part []backend.Burial) []error {
		return redisscript.Each(ctx, &s.Runner, buryScript, part, nil, func(args []any, b backend.Burial) []any {
			return append(args, tokenOf(b.Lease), b.Reason)
		}, redisscript.OneOr(backend.ErrLeaseLost))
	})
}

// Extend is as in backend.Queue.
func (s *Store) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	ends := make([]time.Time, 0, len(ls))
	errs := redisscript.Chunked(ls, redisscript.Small, func(part []backend.Lease) []error {
		after := len(ends) + len(part)
		errs := redisscript.Each(ctx, &s.Runner, extendScript, part, []any{redisscript.Delay(lease)}, func(args []any, l backend.Lease) []any {
			return append(args, tokenOf(l))
		}, func(reply any) error {
			ends = append(ends, redisscript.MS(reply))
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
