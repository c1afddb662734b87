package rabbitmq

import (
	"fmt"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
)

// buckets have a queue for each of some delays. Other delays are rounded up to the next bucket. A
// longer delay passes through the longest bucket several times.
type buckets struct {
	waits   []time.Duration // sorted
	only    bool            // other delays are rejected
	classic bool
}

func (b buckets) declare(ch *amqp.Channel, n names) error {
	for _, wait := range b.waits {
		if err := declareWaiting(ch, n.bucket(wait.Milliseconds()), wait, n.deliver(), b.classic); err != nil {
			return err
		}
	}
	return nil
}

func (b buckets) route(n names, dest string, ms int64) route {
	wait := time.Duration(ms) * time.Millisecond
	i := slices.IndexFunc(b.waits, func(w time.Duration) bool { return w >= wait })
	if i < 0 {
		i = len(b.waits) - 1
	}
	return route{key: n.bucket(b.waits[i].Milliseconds()), headers: amqp.Table{moreKeys: []any{keyOf(dest)}}}
}

func (b buckets) parts(n names) (exchanges, queues []string) {
	for _, wait := range b.waits {
		exchanges = append(exchanges, n.bucket(wait.Milliseconds()))
	}
	return exchanges, exchanges[:len(exchanges):len(exchanges)]
}

func (buckets) exchanges(names) []exchange { return nil }

// accepts rejects delays that would let a pushed message wait behind longer delays in the only
// queue.
func (b buckets) accepts(wait time.Duration) error {
	if !b.only || wait <= 0 || wait == b.waits[0] {
		return nil
	}
	return backend.Invalid("delay", wait, fmt.Sprintf("0 or %v: all messages of a Fixed backend wait in one queue, each behind those before it", b.waits[0]))
}
