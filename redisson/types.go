package redisson

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
)

// checkWithin bounds how long the check of the keys takes in Open.
const checkWithin = 2 * time.Second

// checkEvery is how often a store's pushes check the types of all keys. A key that a push uses
// shows its type each time.
const checkEvery = time.Second

// typeClock tells when the types of the keys are to be looked at again.
type typeClock struct {
	clock clockwork.Clock // the injected one, or a real one
	// one interval before the store was made, so that its first push checks them
	zero time.Time
	seen atomic.Int64 // when all types were right, in ns after zero
}

func newTypeClock(c clockwork.Clock) *typeClock {
	if c == nil {
		c = clockwork.NewRealClock()
	}
	return &typeClock{clock: c, zero: c.Now().Add(-checkEvery)}
}

func (t *typeClock) now() int64 { return int64(t.clock.Since(t.zero)) }

func (t *typeClock) due(now int64) bool { return now-t.seen.Load() >= int64(checkEvery) }

// checkTypes returns an error where a key of the queue holds something else, as one of another
// program's may. A server that does not reply is no error: calls find out by themselves.
func (s *store) checkTypes(ctx context.Context, queue string) error {
	ctx, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	reply, err := s.Run(ctx, typesScript)
	if err != nil {
		s.Log.DebugContext(ctx, "delayq: the types of the queue's keys could not be asked for", "queue", queue, "err", err)
		return nil
	}
	wrong, _ := reply.(string)
	return s.wrongTypeError(wrong)
}

// wrongTypeError is the error of a key of another type, as the scripts tell it: by its place in
// KEYS, from 1 on. It is nil for nothing.
func (s *store) wrongTypeError(wrong string) error {
	place, found, _ := strings.Cut(wrong, " ")
	i, err := strconv.Atoi(place)
	if err != nil || i < 1 || i > len(s.Keys) {
		return nil //nolint:nilerr // the script says nothing
	}
	return backend.Invalid("queue name", strings.TrimPrefix(s.names.destination, s.prefix), fmt.Sprintf(
		"one whose keys no other program uses: the key %.300q holds a %.20s, and not the type that a delayed queue has there", s.Keys[i-1], found))
}

// wrongType explains the error of a script that found a key of another type. Where a command of
// the script found it, it asks which key that is.
func (s *store) wrongType(ctx context.Context, err error) error {
	const mark = "WRONGTYPE "
	var reply interface{ RedisError() }
	if err == nil || !errors.As(err, &reply) {
		return err
	}
	_, wrong, found := strings.Cut(reply.(error).Error(), mark)
	if !found {
		return err
	}
	if named := s.wrongTypeError(wrong); named != nil {
		return named
	}
	if named := s.checkTypes(ctx, strings.TrimPrefix(s.names.destination, s.prefix)); named != nil {
		return named
	}
	return err
}
