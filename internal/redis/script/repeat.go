package script

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/call"
)

// Run runs a script. It tries up to three times when replies are lost, and for longer while the
// server is not ready. The error of the last try matches [backend.ErrUnavailable], and
// [backend.ErrOutcomeUnknown] where one try may have been executed.
func (r *Runner) Run(ctx context.Context, sc *Script, args ...any) (any, error) {
	return r.repeat(ctx, sc, attempts{}, args)
}

// Again is Run for a script that may have been executed already, since some time on.
func (r *Runner) Again(ctx context.Context, since time.Time, sc *Script, args ...any) (any, error) {
	return r.repeat(ctx, sc, attempts{again: true, since: since}, args)
}

// Once runs a script that must not be executed twice. A lost reply is ErrUnknown.
func (r *Runner) Once(ctx context.Context, sc *Script, args ...any) (any, error) {
	return r.repeat(ctx, sc, attempts{once: true}, args)
}

// attempts describes a script's tries so far.
type attempts struct {
	made  int
	last  error // of those made
	began time.Time
	since time.Time // when the first one began
	again bool      // one may have been executed
	once  bool      // no second one may be executed
}

func (r *Runner) repeat(ctx context.Context, sc *Script, a attempts, args []any) (any, error) {
	a.began = time.Now()
	if !a.again {
		a.since = a.began
	}
	for {
		reply, err := r.runOnce(ctx, sc, a.first(), args)
		problem := problemOf(ctx, err)
		if problem == none {
			return reply, wrap(sc, a.known(ctx, err))
		}
		a.made, a.last = a.made+1, err
		a.again = a.again || problem == lost
		if a.enough(problem) || !pause(ctx, a.interval()) {
			return nil, wrap(sc, a.failed(ctx, err))
		}
	}
}

// first returns when the first try began, for a try that may be a second execution.
func (a attempts) first() time.Time {
	if a.again {
		return a.since
	}
	return time.Time{}
}

const (
	tries      = 3
	retryPause = 10 * time.Millisecond
	longPause  = 250 * time.Millisecond

	// unreadyFor bounds the tries against a server that is not ready, where the context does not.
	unreadyFor = 10 * time.Second
)

func (a attempts) interval() time.Duration { return min(retryPause<<min(a.made, tries+1), longPause) }

func (a attempts) enough(p problem) bool {
	switch p {
	case unready:
		return time.Since(a.began) >= unreadyFor
	case lost:
		return a.once || a.made >= tries
	default:
		return a.made >= tries
	}
}

// failed returns the error of the last try.
func (a attempts) failed(ctx context.Context, err error) error {
	err = fmt.Errorf("%w: %w", backend.ErrUnavailable, err)
	if a.again {
		err = fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	if over := ctx.Err(); over != nil {
		err = fmt.Errorf("%w: %w", over, err)
	}
	return err
}

// known adds to the error of a try that earlier ones may have been executed, and their error where
// the context has ended.
func (a attempts) known(ctx context.Context, err error) error {
	ended := ctx.Err() != nil || over(ctx)
	if err == nil || a.made == 0 || !ended && errors.Is(err, backend.ErrUnconfirmed) {
		return err
	}
	if a.again && !errors.Is(err, backend.ErrOutcomeUnknown) {
		err = fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	if !ended {
		return err
	}
	return fmt.Errorf("%w; the try before: %w: %w", err, backend.ErrUnavailable, a.last)
}

// A problem is the reason why a script is tried again.
type problem int

const (
	none      problem = iota
	lost              // it may have been executed
	unsent            // there was no connection
	unready           // the server says that it will be ready, in its own time
	misplaced         // the server cannot execute it, and another one may soon be in its place
)

// Replies of servers that have not executed the script.
var (
	unreadyReplies   = []string{"LOADING", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "ASK "}
	misplacedReplies = []string{"READONLY", "NOREPLICAS", "BUSY ", "MOVED ", "max number of clients"}
)

func problemOf(ctx context.Context, err error) problem {
	var reply redis.Error
	var loading *notLoaded
	switch {
	case err == nil || errors.Is(err, backend.ErrUnconfirmed):
		return none
	case errors.As(err, &reply):
		return refusal(err)
	case !Unknown(ctx, err) || errors.Is(err, backend.ErrOutcomeUnknown) || errors.Is(err, context.DeadlineExceeded) && over(ctx):
		return none
	case call.Unsent(err) || errors.As(err, &loading):
		return unsent
	default:
		return lost
	}
}

// over reports whether the context's deadline has passed. That may be a moment before the context
// ends.
func over(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && !time.Now().Before(deadline)
}

func refusal(err error) problem {
	for _, prefix := range unreadyReplies {
		if redis.HasErrorPrefix(err, prefix) {
			return unready
		}
	}
	for _, prefix := range misplacedReplies {
		if redis.HasErrorPrefix(err, prefix) {
			return misplaced
		}
	}
	// Before Redis 7 the error of a command in a script begins with the place in the script.
	if strings.Contains(err.Error(), "READONLY You can't write against a read only replica") {
		return misplaced
	}
	return none
}

func wrap(sc *Script, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("script %s: %w", sc.name, sc.naming(Translate(err)))
}

// A failure is the error of a script that the script itself returned, for one message.
type failure string

func (f failure) Error() string { return string(f) }

// RedisError makes it one of the server's.
func (f failure) RedisError() {}

// Failed returns the error of a script that caught it for one message.
func (sc *Script) Failed(text string) error { return wrap(sc, failure(text)) }

// Unknown reports whether a command may have been executed though there is no reply.
func Unknown(ctx context.Context, err error) bool {
	var reply redis.Error
	return err != nil && ctx.Err() == nil && !errors.As(err, &reply) && !errors.Is(err, redis.ErrClosed) &&
		!errors.Is(err, backend.ErrUnconfirmed) && !errors.Is(err, backend.ErrInvalid)
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
