package rabbitmq

import (
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

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

func (e delayedExchange) route(n names, dest string, ms int64) route {
	// The plugin routes when the delay is over. With the mandatory flag the broker would return
	// every message.
	return route{exchange: e.name(n), key: keyOf(dest), headers: amqp.Table{"x-delay": min(ms, longestXDelay)}, notMandatory: true}
}

func (e delayedExchange) parts(n names) (exchanges, queues []string) { return []string{e.name(n)}, nil }

func (e delayedExchange) exchanges(n names) []exchange {
	return []exchange{{e.name(n), "x-delayed-message"}}
}
