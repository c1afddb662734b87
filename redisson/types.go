package redisson

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/delayq/delayq/backend"
)

// checkWithin bounds how long the check of the keys takes in Open.
const checkWithin = 2 * time.Second

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
	return s.mistyped(wrong)
}

// mistyped is the error of a key of another type, as the scripts tell it: by its place in KEYS,
// from 1 on. It is nil for nothing.
func (s *store) mistyped(wrong string) error {
	place, found, _ := strings.Cut(wrong, " ")
	i, err := strconv.Atoi(place)
	if err != nil || i < 1 || i > len(s.Keys) {
		return nil
	}
	return backend.Invalid("queue name", strings.TrimPrefix(s.names.destination, s.prefix), fmt.Sprintf(
		"one whose keys no other program uses: the key %.300q holds a %.20s, which is not what a delayed queue keeps there", s.Keys[i-1], found))
}

// wrongType explains the refusal of a script that found a key of another type.
func (s *store) wrongType(err error) error {
	const mark = "WRONGTYPE "
	var reply interface{ RedisError() }
	if err == nil || !errors.As(err, &reply) {
		return err
	}
	_, wrong, found := strings.Cut(reply.(error).Error(), mark)
	if named := s.mistyped(wrong); found && named != nil {
		return named
	}
	return err
}
