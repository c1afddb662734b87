package backend

import "time"

// The portable limits, which every store accepts. Package delayq checks them before a backend sees
// a message, so that a message that works on one store works on all.
const (
	// MaxBody is the largest body in bytes: the default max_message_size of RabbitMQ 4.
	MaxBody = 16 << 20

	// MaxHeaders is the largest sum of all header keys and values in bytes, and of
	// HeaderCost for each header. RabbitMQ has to fit them into one frame, of 128 KiB
	// by default, and takes six bytes more for each.
	MaxHeaders = 64 << 10
	HeaderCost = 8

	// MaxHeaderKey and MaxID are in bytes: AMQP's short strings.
	MaxHeaderKey = 255
	MaxID        = 255

	// MaxName is the longest queue name in bytes: it has to fit into an AMQP routing key together
	// with a delay.
	MaxName = 200

	// MaxReason is the longest reason of a dead letter in bytes; longer ones are cut.
	MaxReason = 16 << 10

	// MaxDelay is a hundred years, the longest delay.
	MaxDelay = 100 * 365 * 24 * time.Hour

	// MinLease and MaxLease bound a lease.
	MinLease = time.Millisecond
	MaxLease = 24 * time.Hour

	// MinUnique and MaxUnique bound UniqueFor.
	MinUnique = time.Millisecond
	MaxUnique = 400 * 24 * time.Hour

	// MinWait bounds MaxWait from below, and MaxDelay from above.
	MinWait = time.Millisecond
)

// EarliestDue and LatestDue bound a due time. Both fit into 63 bits of nanoseconds
// since 1970, and into the 53 bits of milliseconds that a Redis score keeps exactly.
var (
	EarliestDue = time.Unix(0, 0).UTC()
	LatestDue   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)
