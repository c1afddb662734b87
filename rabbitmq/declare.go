package rabbitmq

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }

func declareExchange(ch *amqp.Channel, name, kind string, args amqp.Table) error {
	return explain("declaring exchange "+name, ch.ExchangeDeclare(name, kind, true, false, false, false, args))
}

func declareQueue(ch *amqp.Channel, name string, args amqp.Table) error {
	_, err := ch.QueueDeclare(name, true, false, false, false, args)
	return explain("declaring queue "+name, err)
}

func bind(ch *amqp.Channel, queue, key, exchange string) error {
	return explain("binding queue "+queue+" to exchange "+exchange, ch.QueueBind(queue, key, exchange, false, nil))
}

func bindExchange(ch *amqp.Channel, to, key, from string) error {
	return explain("binding exchange "+to+" to exchange "+from, ch.ExchangeBind(to, key, from, false, nil))
}

// declareWaiting declares a queue that passes what has waited long enough on to an exchange. It dead-letters at least
// once, which takes a quorum queue that refuses rather than drops: others lose messages when the broker crashes.
func declareWaiting(ch *amqp.Channel, name string, wait time.Duration, next string, classic bool) error {
	args := amqp.Table{"x-message-ttl": wait.Milliseconds(), "x-dead-letter-exchange": next}
	if !classic {
		args["x-queue-type"] = "quorum"
		args["x-dead-letter-strategy"] = "at-least-once"
		args["x-overflow"] = "reject-publish"
	}
	return declareQueue(ch, name, args)
}

// declareEntered declares such a queue, and an exchange of its name that puts there whatever is published to it.
func declareEntered(ch *amqp.Channel, name string, wait time.Duration, next string, classic bool) error {
	if err := declareWaiting(ch, name, wait, next, classic); err != nil {
		return err
	}
	if err := declareExchange(ch, name, "fanout", nil); err != nil {
		return err
	}
	return bind(ch, name, "", name)
}

// noLimit is how often a message may be redelivered: RabbitMQ 4 drops it after 20 times by default.
const noLimit = math.MaxInt32

// keeping are the arguments of a queue that keeps messages until they are settled.
func keeping(classic bool) amqp.Table {
	if classic {
		return nil
	}
	return amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": int64(noLimit)}
}

// declareCommon declares what all queues of a namespace share. The levels would stop if a message could not leave
// them, so what nobody takes has a place of its own.
func declareCommon(ch *amqp.Channel, n names, d delayer, classic bool) error {
	lost := n.undeliverable()
	if err := declareExchange(ch, lost, "fanout", nil); err != nil {
		return err
	}
	if err := declareQueue(ch, lost, keeping(classic)); err != nil {
		return err
	}
	if err := bind(ch, lost, "", lost); err != nil {
		return err
	}
	if err := declareExchange(ch, n.deliver(), "topic", amqp.Table{"alternate-exchange": lost}); err != nil {
		return err
	}
	return d.declare(ch, n)
}

// declareOwn declares a queue and its dead letters.
func declareOwn(ch *amqp.Channel, n names, queue string, classic bool) error {
	for _, name := range []string{n.queue(queue), n.dead(queue)} {
		if err := declareQueue(ch, name, keeping(classic)); err != nil {
			return err
		}
	}
	return bind(ch, n.queue(queue), keyOf(queue), n.deliver())
}

// explain says what was being done, and where the broker refused it, what to do about it.
func explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	var refusal *amqp.Error
	if !errors.As(err, &refusal) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	switch refusal.Code {
	case amqp.AccessRefused:
		return fmt.Errorf("%s: the user lacks a permission (configure to declare; write to publish and to bind a queue; read to consume and to bind to an exchange): %w", doing, err)
	case amqp.PreconditionFailed:
		return fmt.Errorf("%s: it is there with other arguments, which cannot be changed: use another namespace, or let it run empty and delete it: %w", doing, err)
	default:
		return fmt.Errorf("%s: %w", doing, err)
	}
}
