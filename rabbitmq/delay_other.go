package rabbitmq

import (
	"errors"
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

func (b buckets) route(n names, dest string, ms int64) (route, int64) {
	wait := time.Duration(ms) * time.Millisecond
	i := slices.IndexFunc(b.waits, func(w time.Duration) bool { return w >= wait })
	if i < 0 {
		i = len(b.waits) - 1
	}
	wait = b.waits[i]
	return route{key: n.bucket(wait.Milliseconds()), headers: amqp.Table{moreKeys: []any{keyOf(dest)}}}, max(ms-wait.Milliseconds(), 0)
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

// delayedExchange has the plugin rabbitmq_delayed_message_exchange keep messages until they are
// due.
type delayedExchange struct{}

// longestXDelay is the plugin's longest delay. It delivers messages with a longer one at once.
const longestXDelay = 1<<32 - 1

func (delayedExchange) name(n names) string { return n.prefix + ".delayed" }

func (e delayedExchange) declare(ch *amqp.Channel, n names) error {
	err := declareExchange(ch, e.name(n), "x-delayed-message", amqp.Table{"x-delayed-type": "topic"})
	var refusal *amqp.Error
	if errors.As(err, &refusal) && (refusal.Code == amqp.CommandInvalid || refusal.Code == amqp.PreconditionFailed) {
		return fmt.Errorf("the broker lacks the plugin rabbitmq_delayed_message_exchange, or has another exchange of this name; leave DelayedExchange out to do without: %w", err)
	}
	if err != nil {
		return err
	}
	return explain("binding exchange "+n.deliver()+" to exchange "+e.name(n), ch.ExchangeBind(n.deliver(), "#", e.name(n), false, nil))
}

func (e delayedExchange) route(n names, dest string, ms int64) (route, int64) {
	left := max(ms-longestXDelay, 0)
	// The plugin routes when the delay is over. With the mandatory flag the broker would return
	// every message.
	return route{exchange: e.name(n), key: keyOf(dest), headers: amqp.Table{"x-delay": ms - left}, notMandatory: true}, left
}

func (e delayedExchange) parts(n names) (exchanges, queues []string) { return []string{e.name(n)}, nil }

func (e delayedExchange) exchanges(n names) []exchange {
	return []exchange{{e.name(n), "x-delayed-message"}}
}
