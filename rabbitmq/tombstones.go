package rabbitmq

import (
	"context"
	"time"

	"github.com/delayq/delayq/backend"
)

// Tombstones is a store of which messages are cancelled and which are in flight: the broker cannot
// tell either. Package tombstone keeps it in memory, for one process. Package redistomb keeps it in
// Redis, for all processes that push to a queue, take from it or cancel in it.
//
// A store has at most one record for each id of a queue. Queues are independent of one another.
//
// Every method is safe for concurrent use, also by several processes if the store is shared. A call
// on one id is atomic, and calls on one id are linearizable: that decides between Cancel and Take.
// A call on several ids may be as many calls. A method ends soon after its context. After an error
// it is unknown which part of the call took effect. Every call may be repeated with the same
// arguments. Queue names and ids are any bytes, ids up to backend.MaxID.
type Tombstones interface {
	// Enroll returns a stamp for each message that is about to be published, in the order of ids. A
	// stamp is greater than 0. It is greater than all stamps of the queue that earlier calls of
	// Enroll returned or of Cancel used. Stamps of one call may be equal. If there is a record of
	// the id, it notes that a message is waiting.
	Enroll(ctx context.Context, queue string, ids []string) (stamps []int64, err error)

	// Cancel cancels all messages of each id that were enrolled before, and remembers that for keep.
	// The error of an id is backend.ErrInFlight while one of its messages is held. It is
	// backend.ErrNotFound if the record says that the last enrolled message was cancelled or settled.
	// It is nil if the record does not say so, or if there is no record. An id with an error is
	// unchanged.
	Cancel(ctx context.Context, queue string, ids []string, keep time.Duration) []error

	// Take reports for each message whether a Cancel came after its stamp. A message that is not
	// cancelled is held for at least lasts, or for its earlier hold if that is longer. A second Take
	// with the same token extends the first.
	Take(ctx context.Context, queue string, hs []Hold, lasts time.Duration) (cancelled []bool, err error)

	// Release ends holds of messages that go back to waiting. A hold that does not exist or has ended
	// is no error.
	Release(ctx context.Context, queue string, hs []Hold) error

	// Settle ends holds of messages that are done or dead, and remembers that for at least keep.
	Settle(ctx context.Context, queue string, hs []Hold, keep time.Duration) error
}

// A Hold is one message in flight at one worker.
type Hold struct {
	ID    string
	Stamp int64  // of the message; 0 if it was never enrolled
	Token string // of this hold alone
}

// The defaults of [KeepCancelled] and [KeepSettled].
const (
	DefaultKeepCancelled = 100 * 24 * time.Hour
	DefaultKeepSettled   = 10 * time.Minute
)

// WithTombstones makes messages cancellable by means of a store. Every process of the queue must
// use it. Earlier cancellations of an id cover messages that are pushed without it. A process that
// receives without it hands out cancelled messages. docs/rabbitmq.md lists the limits. The most
// important ones: a cancelled message stays in the broker until it is due and a worker would get
// it. Cancel of an id that the store does not know returns nil. While the store does not reply,
// pushes fail and messages wait. The caller closes the store.
func WithTombstones(store Tombstones) Option {
	return func(o *options) {
		if store == nil {
			o.reject(backend.Invalid("rabbitmq.WithTombstones", nil, "a store, such as tombstone.NewMemory()"))
		}
		o.tombstones = store
	}
}

// KeepCancelled sets how long a cancellation is remembered, at least a minute. The default is 100
// days. Delays may be half as long at most: the other half is for due messages that wait for a
// worker. A cancelled message that waits longer is handed out.
func KeepCancelled(d time.Duration) Option {
	return func(o *options) {
		if d < time.Minute || d > 2*backend.MaxDelay {
			o.reject(backend.Invalid("rabbitmq.KeepCancelled", d, "1m to 200 years"))
		}
		o.keepCancelled = d
	}
}

// KeepSettled sets how long Cancel returns delayq.ErrNotFound for a message that is done or dead,
// at least a second. The default is 10 minutes. After that Cancel returns nil, as for any id
// without a message. The store keeps a record of each message for as long.
func KeepSettled(d time.Duration) Option {
	return func(o *options) {
		if d < time.Second || d > backend.MaxDelay {
			o.reject(backend.Invalid("rabbitmq.KeepSettled", d, "1s to 100 years"))
		}
		o.keepSettled = d
	}
}

// setTombstones checks the options of tombstones and applies their defaults.
func (o *options) setTombstones() {
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

// maxDelay returns the longest delay that a cancellation outlasts, and 0 without a store.
func (o *options) maxDelay() time.Duration {
	if o.tombstones == nil {
		return 0
	}
	return o.keepCancelled / 2
}
