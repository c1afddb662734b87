package redisson

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/queue"
	"github.com/delayq/delayq/internal/redis/script"
)

// store is one queue's messages. It is safe for concurrent use. Every method runs one script or,
// for a large batch, a few.
type store struct {
	script.Runner
	script.Pausing
	options
	names names
	types *typeClock

	warned atomic.Bool // of the codec
}

var _ queue.Messages = (*store)(nil)

// own are this package's keys, after Redisson's in the order of the scripts' KEYS.
var own = []string{"leases", "held", "states", "dead", "graves", "seq", "handed", "payloads", "quarantine"}

func (b *Backend) store(queue string, o backend.Options) (*store, error) {
	n := namesOf(b.setup.prefix + queue)
	keys := n.scriptKeys()
	if err := fitsCluster(b.queues.Client, queue, keys); err != nil {
		return nil, err
	}
	s := &store{options: b.setup, names: n, types: newTypeClock(o.Clock)}
	s.Runner = script.Runner{
		Client: b.queues.Client, Calls: b.queues.Calls, Keys: keys, Clock: o.Clock, Log: o.Logger,
		Args: []any{n.channel, s.flags(), s.format.String(), s.grace()},
	}
	s.Pausing = script.NewPausing(s.Runner, n.paused(), n.channel)
	return s, nil
}

// scriptKeys returns Redisson's keys and this package's, but the one of a pause.
func (n names) scriptKeys() []string {
	keys := n.keys()
	for _, key := range own {
		keys = append(keys, keyName("delayq_"+key, n.destination))
	}
	return keys
}

func (n names) paused() string { return keyName("delayq_paused", n.destination) }

// allKeys returns Redisson's keys and this package's.
func (n names) allKeys() []string { return append(n.scriptKeys(), n.paused()) }

// fitsCluster rejects a name whose keys are in several slots of a Cluster, where Redisson's offers
// fail too.
func fitsCluster(client redis.UniversalClient, queue string, keys []string) error {
	if _, cluster := client.(*redis.ClusterClient); cluster && !sameSlot(keys...) {
		return backend.Invalid("queue name", queue, "on a Cluster, a name without braces or with one {tag}: the keys that Redisson makes of this one are in different slots")
	}
	return nil
}

func (s *store) envelopes() bool { return s.codec == Envelope }

func (s *store) flags() string {
	var f strings.Builder
	if s.envelopes() {
		f.WriteByte('e')
	}
	if s.index {
		f.WriteByte('l')
	}
	return f.String()
}

// leastGrace is the least time between the end of a lease and the moment when Java may take its
// message. In that time a Go process claims it, if one runs. Java's clocks may be ahead by that
// much.
const leastGrace = 2 * time.Second

// grace is in ms.
func (s *store) grace() int64 { return max(leastGrace, 2*s.sweep).Milliseconds() }

// Channel returns the channel where Redisson announces a message that becomes the first, with its
// due time in ms.
func (s *store) Channel() string { return s.names.channel }
