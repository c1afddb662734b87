package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
)

// These errors decide how a failure is handled. Any other error is returned as it is.
var (
	// errGone says that the connection broke and nothing was sent: try again on the next one.
	errGone = fmt.Errorf("%w: the connection broke", backend.ErrUnavailable)

	// errUnrouted says that a queue was not there: declare it and publish again.
	errUnrouted = errors.New("the broker could not route the message")

	// errRefused says that a queue is full or has no leader: publish again after a pause.
	errRefused = fmt.Errorf("%w: the broker refused the message: a queue on its way is full or has no leader", backend.ErrUnavailable)

	// errUnknown says that the broker may have the message: publish it never again, since a second
	// copy would be a duplicate.
	errUnknown = fmt.Errorf("%w: the channel closed before the broker confirmed the message", backend.ErrOutcomeUnknown)

	// errAckUnknown says that the broker may have read an ack.
	errAckUnknown = fmt.Errorf("%w: the connection broke before the broker confirmed the ack", backend.ErrOutcomeUnknown)

	// errCloseUnknown says that the handle closed after it had taken a settlement, which the
	// broker may have.
	errCloseUnknown = fmt.Errorf("%w: the queue was closed before the broker confirmed the ack", backend.ErrOutcomeUnknown)
)

// unknown marks the error of a call that the broker may have received.
func unknown(err error) error { return fmt.Errorf("%w: %w", backend.ErrOutcomeUnknown, err) }

const firstPause = 20 * time.Millisecond

// A backoff is the pause before the next try. It doubles with each try.
type backoff struct{ pause, most time.Duration }

// next returns a pause. It is random within its upper half, so that clients that failed together
// try again at different times.
func (b *backoff) next() time.Duration {
	half := b.pause / 2
	b.pause = min(2*b.pause, b.most)
	return half + rand.N(half)
}

// tries is how often a call is made at least before an error that may pass is returned: on a busy
// machine one call may take longer than refusedFor.
const tries = 5

// awayFor bounds how long the node of a queue may be away before that error is returned.
const awayFor = 3 * time.Second

// patiently calls do again, with pauses, while the broker returns an error that may pass:
//
//   - an internal one, for up to refusedFor. A broker without enough processor time returns one for a
//     new quorum queue whose members do not find one another in time ("cluster_not_formed"). It
//     closes the connection then.
//   - that a queue's node is away, for up to awayFor. A busy broker may say so of itself, while
//     another client declares the queue.
func patiently(ctx context.Context, do func() error) (err error) {
	retry, began := backoff{5 * firstPause, time.Second}, time.Now()
	for n := 1; ; n++ {
		err = do()
		most := refusedFor
		switch {
		case nodeIsAway(err):
			most = awayFor
		case !refusedWith(err, amqp.InternalError):
			return err
		}
		if n >= tries && time.Since(began) > most || !sleep(ctx, retry.next()) {
			return err
		}
	}
}

// nodeIsAway reports whether the broker knows the queue, and does not reach the node that has it.
func nodeIsAway(err error) bool {
	return refusedWith(err, amqp.NotFound) && strings.Contains(err.Error(), "down or inaccessible")
}

// sleep waits, and returns false if the context ends before.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
