package redisson

import (
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/queue"
	"github.com/delayq/delayq/internal/redis/script"
)

// store is one queue's messages. It is safe for concurrent use; every method is one script or, for
// large batches, a few.
type store struct {
	script.Runner
	options
	names names
	log   *slog.Logger

	warned atomic.Bool // of the codec
}

var _ queue.Messages = (*store)(nil)

// own are the keys beside Redisson's, in the order in which the scripts take them.
var own = []string{"leases", "held", "states", "dead", "graves", "seq", "handed", "payloads", "quarantine"}

func (b *Backend) store(queue string, o backend.Options) (*store, error) {
	n := namesOf(b.setup.prefix + queue)
	keys := n.allKeys()
	if err := fitsCluster(b.queues.Client, queue, keys); err != nil {
		return nil, err
	}
	s := &store{options: b.setup, names: n, log: o.Logger}
	s.Runner = script.Runner{
		Client: b.queues.Client, Calls: b.queues.Calls, Keys: keys, Clock: o.Clock,
		Args: []any{n.channel, s.flags(), s.format.String(), s.grace()},
	}
	if s.log != nil {
		s.Warn = func(err string) {
			s.log.Warn("delayq: what was stored could not be announced; workers find it at their next look", "err", err)
		}
	}
	return s, nil
}

// allKeys are Redisson's and ours.
func (n names) allKeys() []string {
	keys := n.keys()
	for _, key := range own {
		keys = append(keys, keyName("delayq_"+key, n.destination))
	}
	return keys
}

// fitsCluster refuses names whose keys are not all in one slot of a Cluster, as Redisson's own offers would be refused.
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

// leastGrace is how long after a lease has ended Java may take its message, at least. Until then one of us has looked, if
// there is any, and Java's clocks may be ahead by that much.
const leastGrace = 2 * time.Second

// grace is in ms.
func (s *store) grace() int64 { return max(leastGrace, 2*s.sweep).Milliseconds() }

// Channel is where Redisson announces a message that becomes the head, with its due time in ms.
func (s *store) Channel() string { return s.names.channel }
