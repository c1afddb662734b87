package redisson

import (
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/queue"
	"github.com/delayq/delayq/internal/redis/setup"
)

// An Option sets up a backend in [New]. One out of range is reported by Open.
type Option func(*options)

type options struct {
	codec  Codec
	format MemberFormat
	force  bool // write that format whatever Java's members show
	index  bool
	prefix string
	sweep  time.Duration
	err    error
}

func newOptions(client redis.UniversalClient, opts []Option) options {
	o := options{codec: String, format: Both, index: true, sweep: queue.DefaultPoll}
	if client == nil {
		o.reject(backend.Invalid("client", nil, "a go-redis client"))
	}
	o.reject(setup.Apply(&o, opts, "redisson", "the result of WithCodec, Format or another option"))
	return o
}

func (o *options) reject(err error) { o.err = errors.Join(o.err, err) }

// WithCodec sets the codec, which turns bodies into payloads: the one of the Java side, by default
// [String]; or [Envelope] for a queue that only this package uses.
func WithCodec(c Codec) Option {
	return func(o *options) {
		if c == nil {
			o.reject(backend.Invalid("redisson.WithCodec", nil, "a codec, such as redisson.String or redisson.Kryo5String"))
		}
		o.codec = c
	}
}

// Format sets the layout of the members that are written, [Both] by default, which every version of
// Redisson reads. All layouts are read. A push of [V1] or [V2] is rejected with a
// [backend.InvalidError] while members of the queue show that Java's readers are of the other
// layout, but with [AnyFormat]. While the queue is empty nothing shows it.
func Format(f MemberFormat) Option {
	return func(o *options) {
		if f < V2 || f > Both {
			o.reject(backend.Invalid("redisson.Format", int(f), "V2, V1 or Both"))
		}
		o.format = f
	}
}

// AnyFormat writes the chosen layout whatever the queue's members show, to move a queue from one
// layout to the other once every Java process can read it.
func AnyFormat() Option { return func(o *options) { o.force = true } }

// NoIndex leaves the index list out: memory falls by the payload and some 20 bytes a message, and a
// message in the middle of a million others costs no more than any other. Java still receives
// messages, but its RDelayedQueue's size, contains, remove, poll, peek and readAll do not see them,
// and a transfer by Java looks through the whole list for each of them if it is not empty. So it is
// for queues to which no Java process pushes.
func NoIndex() Option { return func(o *options) { o.index = false } }

// NamePrefix puts text before the names of queues, as a NameMapper of Redisson's does: with "app:"
// the queue "orders" is the list "app:orders".
func NamePrefix(prefix string) Option {
	return func(o *options) {
		if len(prefix) > maxPrefix || strings.ContainsRune(prefix, 0) {
			o.reject(backend.Invalid("redisson.NamePrefix", prefix, "up to 256 bytes without NUL"))
		}
		o.prefix = prefix
	}
}

const maxPrefix = 256

// Sweep sets how often a queue is looked through when no wake-up comes, 10 ms to 1 min, 1 s by
// default. It bounds how late a lost wake-up can make a message, Java's own messages included. More
// than a hundred open queues share a hundred looks a second.
func Sweep(d time.Duration) Option {
	return func(o *options) {
		o.reject(queue.ValidPoll("redisson.Sweep", d))
		o.sweep = d
	}
}

// A Go worker that becomes free within this time gets a due message before it is handed over to
// Java. The random part keeps processes from claiming at the same moment.
const (
	leastIdle = 10 * time.Millisecond
	moreIdle  = 10 * time.Millisecond
)
