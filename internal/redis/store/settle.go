package store

import (
	"context"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
	"github.com/delayq/delayq/internal/redis/script"
)

// Ack is as in backend.Queue.
func (s *Store) Ack(ctx context.Context, ls []backend.Lease) []error {
	return script.Chunked(ls, script.Small, func(part []backend.Lease) []error {
		return script.Each(ctx, &s.Runner, ackScript, part, nil, func(args []any, l backend.Lease) []any {
			return append(args, tokenOf(l))
		}, script.OneOr(backend.ErrLeaseLost))
	})
}

// Nack is as in backend.Queue.
func (s *Store) Nack(ctx context.Context, rs []backend.Return) []error {
	size := func(r backend.Return) int { return record.ContentSize(r.Headers, nil) }
	return script.Chunked(rs, size, func(part []backend.Return) []error {
		return script.Each(ctx, &s.Runner, nackScript, part, nil, func(args []any, r backend.Return) []any {
			return append(args, tokenOf(r.Lease), script.Delay(r.Delay), returnArg(&r))
		}, script.OneOr(backend.ErrLeaseLost))
	})
}

// returnArg returns the argument that says how a message comes back, with its new headers if it has
// any.
func returnArg(r *backend.Return) any {
	if r.NewHeaders {
		return record.AppendHeaders([]byte{'2'}, r.Headers)
	}
	return script.Flag(r.Untouched)
}

// Dead is as in backend.Queue.
func (s *Store) Dead(ctx context.Context, bs []backend.DeadLetterRequest) []error {
	return script.Chunked(bs, func(b backend.DeadLetterRequest) int { return len(b.Reason) }, func(part []backend.DeadLetterRequest) []error {
		return script.Each(ctx, &s.Runner, deadScript, part, nil, func(args []any, b backend.DeadLetterRequest) []any {
			return append(args, tokenOf(b.Lease), b.Reason)
		}, script.OneOr(backend.ErrLeaseLost))
	})
}

// Extend is as in backend.Queue.
func (s *Store) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	return script.Extend(ctx, &s.Runner, extendScript, ls, lease, func(args []any, l backend.Lease) []any {
		return append(args, tokenOf(l))
	})
}
