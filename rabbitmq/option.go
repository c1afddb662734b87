package rabbitmq

import (
	"crypto/tls"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
)

// An Option configures a backend in [New]. Open returns the error of an invalid option.
type Option func(*options)

type options struct {
	url       string
	hosts     []string // beside the URL's
	namespace string
	grain     time.Duration
	buckets   []time.Duration
	only      bool
	plugin    bool
	ways      int // how many of Grain, Buckets, Fixed and DelayedExchange were given
	classic   bool
	tls       *tls.Config
	delayer   delayer

	management string // HOST:PORT, empty for the URL's host

	tombstones    Tombstones
	keepCancelled time.Duration
	keepSettled   time.Duration

	err error
}

// DefaultNamespace is the default of [Namespace].
const DefaultNamespace = "delayq"

func newOptions(broker string, opts []Option) options {
	o := options{url: broker, namespace: DefaultNamespace, grain: time.Millisecond}
	if _, err := amqp.ParseURI(broker); err != nil {
		o.reject(backend.Invalid("URL", "(hidden)", "amqp://user:password@host:port/vhost, percent-encoded, or amqps://"))
	}
	for _, set := range opts {
		if set == nil {
			o.reject(backend.Invalid("rabbitmq option", nil, "the result of Namespace, Grain or another option"))
			continue
		}
		set(&o)
	}
	if o.ways > 1 {
		o.reject(backend.Invalid("rabbitmq options", "several of Grain, Buckets, Fixed and DelayedExchange", "one of them"))
	}
	o.delayer = o.chosen()
	o.setTombstones()
	return o
}

func (o *options) chosen() delayer {
	switch {
	case o.plugin:
		return delayedExchange{}
	case len(o.buckets) > 0:
		return buckets{waits: slices.Sorted(slices.Values(o.buckets)), only: o.only, classic: o.classic}
	default:
		return levels{grain: o.grain.Milliseconds(), classic: o.classic}
	}
}

func (o *options) reject(err error) { o.err = errors.Join(o.err, err) }

// Namespace sets the prefix of all names of exchanges and queues: 1 to 32 letters, digits, - and _.
// The default is "delayq".
func Namespace(ns string) Option {
	return func(o *options) {
		if ns == "" || len(ns) > 32 || strings.Trim(ns, nameRunes) != "" {
			o.reject(backend.Invalid("rabbitmq.Namespace", ns, "1 to 32 letters, digits, - and _"))
		}
		o.namespace = ns
	}
}

const nameRunes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

// Grain rounds delays up inside the broker, to a whole number of milliseconds up to a minute. The
// default is 1 ms. With 16 ms most messages take a hop less, but messages with delays of 1 to 4 s
// take as many. Messages are up to 16 ms late.
func Grain(d time.Duration) Option {
	return func(o *options) {
		if d < time.Millisecond || d > time.Minute || d%time.Millisecond != 0 {
			o.reject(backend.Invalid("rabbitmq.Grain", d, "1ms to 1m, whole milliseconds"))
			return
		}
		o.grain = d
		o.ways++
	}
}

// longestTTL is the longest x-message-ttl that a broker accepts, ten years.
const longestTTL = 315_360_000_000 * time.Millisecond

func waitable(d time.Duration) bool {
	return d >= time.Millisecond && d <= longestTTL && d%time.Millisecond == 0
}

// Buckets has one queue for each of 1 to 100 delays instead of the levels: one hop instead of up to
// seven. It is for a few delays that are known beforehand, such as retry delays. Other delays are
// rounded up to the next one. A longer delay takes the longest one several times.
func Buckets(delays ...time.Duration) Option {
	return func(o *options) {
		if len(delays) == 0 || len(delays) > 100 || slices.ContainsFunc(delays, func(d time.Duration) bool { return !waitable(d) }) {
			o.reject(backend.Invalid("rabbitmq.Buckets", delays, "1 to 100 delays of 1ms to 10 years, whole milliseconds"))
			return
		}
		o.buckets = slices.Compact(slices.Sorted(slices.Values(delays)))
		o.ways++
	}
}

// Fixed has one queue in which every message waits equally long. A push with any other delay but 0
// returns a [backend.InvalidError]: its message would wait behind earlier messages. A message that
// is nacked with a delay, as Consume's retries are, waits at least as long as the fixed delay. Its
// due time says so. A longer delay takes several rounds, and may end up to one round late.
func Fixed(delay time.Duration) Option {
	return func(o *options) {
		if !waitable(delay) {
			o.reject(backend.Invalid("rabbitmq.Fixed", delay, "1ms to 10 years, whole milliseconds"))
			return
		}
		o.buckets, o.only = []time.Duration{delay}, true
		o.ways++
	}
}

// DelayedExchange has the plugin rabbitmq_delayed_message_exchange keep messages until they are
// due. It exists for RabbitMQ up to 4.2. It keeps a single copy of each message, on one node, and
// is not meant for hundreds of thousands of messages. A confirmed message may still turn out to be
// unroutable. Open fails if the plugin is missing.
func DelayedExchange() Option {
	return func(o *options) {
		o.plugin = true
		o.ways++
	}
}

// Classic keeps messages in classic queues instead of quorum queues. If the broker crashes, they
// lose messages that are passing from level to level, also confirmed ones. They do not count
// attempts, but only mark a message that was handed out before.
func Classic() Option { return func(o *options) { o.classic = true } }

// Hosts names further nodes of a cluster, each HOST or HOST:PORT. Each new connection tries the
// nodes in turn, beginning with the one of the last connection. User, virtual host and scheme are
// the URL's.
func Hosts(hosts ...string) Option {
	return func(o *options) {
		for _, host := range hosts {
			if u, err := url.Parse("amqp://" + host); err != nil || u.Host != host || u.Hostname() == "" {
				o.reject(backend.Invalid("rabbitmq.Hosts", host, "HOST or HOST:PORT"))
			}
		}
		o.hosts = append(o.hosts, hosts...)
	}
}

// TLS sets the configuration for amqps:// URLs. By default, certificates are verified by the
// system's authorities.
func TLS(c *tls.Config) Option { return func(o *options) { o.tls = c } }
