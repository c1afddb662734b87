package redisson

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
	"github.com/delayq/delayq/internal/redis/script"
)

// sealed is a message as the scripts take it.
type sealed struct {
	*backend.Message
	key, payload []byte
}

// Schedule is as in backend.Queue. Where the store makes the ids, a call whose reply was lost is
// not repeated: nothing would tell the second message from the first.
func (s *store) Schedule(ctx context.Context, ms []backend.Message) []error {
	ready, errs := s.seal(ms)
	size := func(m sealed) int { return len(m.payload) }
	stored := script.Chunked(ready, size, func(part []sealed) []error { return s.schedule(ctx, part) })
	if errs == nil {
		return stored
	}
	return merge(errs, stored)
}

// seal makes payloads; the error of one message leaves the others alone.
func (s *store) seal(ms []backend.Message) (ready []sealed, errs []error) {
	ready = make([]sealed, 0, len(ms))
	for i := range ms {
		m, err := s.sealOne(&ms[i])
		if err != nil {
			if errs == nil {
				errs = make([]error, len(ms))
			}
			errs[i] = err
			continue
		}
		ready = append(ready, m)
	}
	return ready, errs
}

func (s *store) sealOne(m *backend.Message) (sealed, error) {
	if s.envelopes() {
		return sealed{m, record.PackID(nil, m.ID), seal(m)}, nil
	}
	if len(m.Headers) > 0 {
		return sealed{}, &backend.UnsupportedError{Backend: name, Op: "headers on a queue shared with Java"}
	}
	payload, err := s.codec.Encode(m.Body)
	if err != nil {
		return sealed{}, fmt.Errorf("codec %s: %w", s.codec.Name(), err)
	}
	// A codec may return the body itself, which the caller may change while a call that it has left
	// is still under way.
	return sealed{m, nil, bytes.Clone(payload)}, nil
}

// merge puts outcomes where errs has none.
func merge(errs, stored []error) []error {
	next := 0
	for i, err := range errs {
		if err != nil {
			continue
		}
		if stored != nil {
			errs[i] = stored[next]
		}
		next++
	}
	return errs
}

func (s *store) schedule(ctx context.Context, ms []sealed) []error {
	args := make([]any, 0, 2+4*len(ms))
	now := s.types.now()
	look := s.types.due(now)
	args = append(args, script.Flag(s.force), script.Flag(look))
	for _, m := range ms {
		args = append(args, m.key, m.payload, script.Due(m.Due), script.Delay(m.Delay))
	}
	run := s.Once
	if s.envelopes() {
		run = s.Run
	}
	reply, err := run(ctx, scheduleScript, args...)
	if look && err == nil {
		s.types.seen.Store(now)
	}
	return script.Outcomes(scheduleScript, len(ms), s.Heard(reply), s.refused(ctx, err), func(i int, reply any) error {
		if text, ok := reply.(string); ok {
			return s.name(ms[i].Message, text)
		}
		return script.Stored(reply)
	})
}

// name gives a stored message the id that was made.
func (s *store) name(m *backend.Message, reply string) error {
	due, key, ok := strings.Cut(reply, " ")
	if !ok {
		return script.Unexpected(scheduleScript, reply)
	}
	m.ID = s.id(key, script.Int(due))
	return nil
}

// refused explains why a script rejects a format, or keys that hold something else.
func (s *store) refused(ctx context.Context, err error) error {
	const mark = "FORMAT "
	if err = s.wrongType(ctx, err); err == nil {
		return nil
	}
	var reply interface{ RedisError() }
	if i := strings.Index(err.Error(), mark); i >= 0 && errors.As(err, &reply) {
		theirs := strings.TrimSpace(err.Error()[i+len(mark):])
		return backend.Invalid("member format", s.format, fmt.Sprintf(
			"Both, which every version of Redisson reads, or %s: this queue has members of %s, so that its readers may know no other; AnyFormat writes them all the same", theirs, theirs))
	}
	return err
}

// Cancel is as in backend.Queue.
func (s *store) Cancel(ctx context.Context, ids []string) []error {
	known, errs := s.known(ids)
	return merge(errs, script.Chunked(known, script.Small, func(part []identity) []error {
		return script.Each(ctx, &s.Runner, cancelScript, part, nil, identityArgs, script.Waited)
	}))
}

func identityArgs(args []any, id identity) []any { return append(args, id.key, id.origin) }

// known are the ids that may name something. The others name nothing.
func (s *store) known(ids []string) (known []identity, errs []error) {
	errs = make([]error, len(ids))
	for i, id := range ids {
		if k, ok := s.identify(id); ok {
			known = append(known, k)
		} else {
			errs[i] = backend.ErrNotFound
		}
	}
	return known, errs
}

// Reschedule is as in backend.Queue.
func (s *store) Reschedule(ctx context.Context, ms []backend.Move) []error {
	type move struct {
		identity
		backend.Move
	}
	var known []move
	errs := make([]error, len(ms))
	for i, m := range ms {
		if k, ok := s.identify(m.ID); ok {
			known = append(known, move{k, m})
		} else {
			errs[i] = backend.ErrNotFound
		}
	}
	return merge(errs, script.Chunked(known, script.Small, func(part []move) []error {
		return script.Each(ctx, &s.Runner, rescheduleScript, part, nil, func(args []any, m move) []any {
			return append(args, m.key, m.origin, script.Due(m.Due), script.Delay(m.Delay))
		}, script.Waited)
	}))
}
