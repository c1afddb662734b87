package store

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
	"github.com/delayq/delayq/internal/redis/script"
)

// Ack is as in backend.Queue.
func (s *Store) Ack(ctx context.Context, ls []backend.Lease) []error {
	errs := script.Chunked(ls, script.Small, func(part []backend.Lease) []error {
		end, token := sharedEnd(part), tokenOf
		if end != nil {
			token = func(l backend.Lease) []byte { return appendMember(nil, l) }
		}
		return script.Each(ctx, &s.Runner, ackScript, part, []any{end}, func(args []any, l backend.Lease) []any {
			return append(args, token(l))
		}, settled)
	})
	return s.endReplaced(ctx, errs, func(i int) backend.Lease { return ls[i] })
}

// sharedEnd is what all tokens begin with, or nil where they differ: mostly a few claims have leased them.
func sharedEnd(ls []backend.Lease) []byte {
	end := ls[0].Token.Lo >> 32
	if slices.ContainsFunc(ls, func(l backend.Lease) bool { return l.Token.Lo>>32 != end }) {
		return nil
	}
	return binary.BigEndian.AppendUint32(nil, uint32(end))
}

// errReplaced is the outcome of a script that does not settle a message, since it was replaced in
// flight.
var errReplaced = errors.New("the message was replaced in flight")

func settled(reply any) error {
	if reply == int64(3) {
		return errReplaced
	}
	return script.OneOr(backend.ErrLeaseLost)(reply)
}

// endReplaced gives back messages that were replaced in flight, and returns the outcomes of all. Each
// of them stays replaced while its lease lasts, so it does not matter what comes between.
func (s *Store) endReplaced(ctx context.Context, errs []error, lease func(i int) backend.Lease) []error {
	var rs []backend.Return
	var places []int
	for i, err := range errs {
		if errors.Is(err, errReplaced) {
			rs, places = append(rs, backend.Return{Lease: lease(i), Untouched: true}), append(places, i)
			errs[i] = nil
		}
	}
	if rs == nil {
		return errs
	}
	for k, err := range s.Nack(ctx, rs) {
		errs[places[k]] = err
	}
	return backend.Each(len(errs), func(i int) error { return errs[i] })
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
	errs := script.Chunked(bs, func(b backend.DeadLetterRequest) int { return len(b.Reason) }, func(part []backend.DeadLetterRequest) []error {
		return script.Each(ctx, &s.Runner, deadScript, part, nil, func(args []any, b backend.DeadLetterRequest) []any {
			return append(args, tokenOf(b.Lease), b.Reason)
		}, settled)
	})
	return s.endReplaced(ctx, errs, func(i int) backend.Lease { return bs[i].Lease })
}

// Extend is as in backend.Queue.
func (s *Store) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	return script.Extend(ctx, &s.Runner, extendScript, ls, lease, func(args []any, l backend.Lease) []any {
		return append(args, tokenOf(l))
	})
}
