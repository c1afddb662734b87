package rabbitmq

import (
	"context"
	"time"

	"github.com/delayq/delayq/backend"
)

// Tombstones remember, for a backend that cannot look into its broker, which messages are cancelled and which are in somebody's
// hands. Package tombstone keeps them in memory, for one process, and package redistomb in Redis, for all processes that push to a
// queue, take from it or cancel in it.
//
// A store knows a record for each id of a queue, or none. Records of different queues have nothing to do with one another.
//
// Every method is safe for concurrent use, also from other processes where the store has any. A call on one id is atomic, and calls on one id
// are linearizable: that is what decides between Cancel and Take. A call on several ids may be as many calls. A method ends soon after its
// context does. After an error it is not known which part of the call was carried out; every call may be repeated with the
// same arguments. Queue names and ids are any bytes, ids up to backend.MaxID.
type Tombstones interface {
	// Enroll gives each message that is about to be published a stamp, in the order of ids. Stamps are greater than 0, and those of a queue rise:
	// a stamp is greater than all that were given, and all that Cancel used, in calls that had returned before. Those of one call may be alike. Where there is
	// a record of the id, it notes that something is waiting.
	Enroll(ctx context.Context, queue string, ids []string) (stamps []int64, err error)

	// Cancel cancels all messages of each id that were enrolled before, and remembers that for as long as keep says. The outcome of an id is
	// backend.ErrInFlight while one of its messages is held, backend.ErrNotFound where the record says that what was last enrolled was cancelled
	// or settled, nil where it does not, which includes that there is no record, or else what went wrong. Only nil has changed anything.
	Cancel(ctx context.Context, queue string, ids []string, keep time.Duration) []error

	// Take says of each message whether it is cancelled: whether a Cancel came after its stamp. If it is not, it is held from then on, for at least
	// as long as lasts says, or as it was to be before if that is longer. A second Take with the same token prolongs the first.
	Take(ctx context.Context, queue string, hs []Hold, lasts time.Duration) (cancelled []bool, err error)

	// Release ends holds of messages that go on waiting. One that is not there, or ended by itself, is nothing to complain about.
	Release(ctx context.Context, queue string, hs []Hold) error

	// Settle ends holds of messages that are done or dead, and remembers that for at least as long as keep says.
	Settle(ctx context.Context, queue string, hs []Hold, keep time.Duration) error
}

// Hold is one message in one worker's hands.
type Hold struct {
	ID    string
	Stamp int64  // of the message, 0 for one that was never enrolled
	Token string // of this hold and of no other
}

// How long a store remembers, unless options say otherwise.
const (
	DefaultKeepCancelled = 100 * 24 * time.Hour
	DefaultKeepSettled   = 10 * time.Minute
)

// WithTombstones makes messages cancellable, by means of a store that every process of the queue has to use: one that pushes without it pushes what
// earlier cancellations of the id still cover, and one that takes without it hands out what is cancelled. docs/rabbitmq.md lists the limits. The most
// important: a cancelled message stays in the broker until it is due and a worker would get it, and Cancel of an id that the store has not
// heard of answers nil. While the store does not answer, pushes fail and messages wait. The store stays the caller's to close.
func WithTombstones(store Tombstones) Option {
	return func(o *options) {
		if store == nil {
			o.reject(backend.Invalid("rabbitmq.WithTombstones", nil, "a store, such as tombstone.NewMemory()"))
		}
		o.tombstones = store
	}
}

// KeepCancelled sets how long a cancellation is remembered, from a minute on; 100 days by default. Delays may be half as long at most: the other half is for
// messages that are due and wait for a worker. One that waits for longer is handed out although it was cancelled.
func KeepCancelled(d time.Duration) Option {
	return func(o *options) {
		if d < time.Minute || d > 2*backend.MaxDelay {
			o.reject(backend.Invalid("rabbitmq.KeepCancelled", d, "1m to 200 years"))
		}
		o.keepCancelled = d
	}
}

// KeepSettled sets for how long Cancel answers delayq.ErrNotFound for a message that is done or dead, from a second on; 10 minutes by default. After that it answers
// nil, as for any id that is not there. It costs the store a record for each message.
func KeepSettled(d time.Duration) Option {
	return func(o *options) {
		if d < time.Second || d > backend.MaxDelay {
			o.reject(backend.Invalid("rabbitmq.KeepSettled", d, "1s to 100 years"))
		}
		o.keepSettled = d
	}
}

// remember completes and checks what is set about tombstones.
func (o *options) remember() {
	if o.tombstones == nil && (o.keepCancelled != 0 || o.keepSettled != 0) {
		o.reject(backend.Invalid("rabbitmq options", "KeepCancelled or KeepSettled without WithTombstones", "these three together"))
	}
	if o.keepCancelled == 0 {
		o.keepCancelled = DefaultKeepCancelled
	}
	if o.keepSettled == 0 {
		o.keepSettled = DefaultKeepSettled
	}
}

// maxDelay is the longest delay whose cancellation would be remembered, 0 where nothing can be cancelled.
func (o *options) maxDelay() time.Duration {
	if o.tombstones == nil {
		return 0
	}
	return o.keepCancelled / 2
}
