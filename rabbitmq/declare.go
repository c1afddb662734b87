package rabbitmq

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
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

// noLimit is how often a message may be redelivered: RabbitMQ 4 drops it after 20 times by default.
const noLimit = math.MaxInt32

// keeping are the arguments of a queue that keeps messages until they are settled.
func keeping(classic bool) amqp.Table {
	if classic {
		return nil
	}
	return amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": int64(noLimit)}
}

// yielding are the arguments of a queue out of which an operator's policy may take messages, by their number, age or deliveries: they are kept aside then.
func yielding(n names, classic bool) amqp.Table {
	args := amqp.Table{"x-dead-letter-exchange": n.undeliverable()}
	maps.Copy(args, keeping(classic))
	return args
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

// declareOwn declares a queue and its dead letters, on channels of its own since a refusal closes them. What an earlier version has declared has fewer arguments, and
// stays as it is.
func declareOwn(conn *amqp.Connection, n names, queue string, classic bool) error {
	ch, err := conn.Channel()
	if err != nil {
		return explain("opening a channel", err)
	}
	defer func() { _ = ch.Close() }()
	for _, name := range []string{n.queue(queue), n.dead(queue)} {
		err := declareQueue(ch, name, yielding(n, classic))
		if refusedWith(err, amqp.PreconditionFailed) {
			again, errAgain := conn.Channel()
			if errAgain != nil {
				return explain("opening a channel", errAgain)
			}
			ch = again
			if declareQueue(ch, name, keeping(classic)) == nil {
				err = nil
			}
		}
		if err != nil {
			return err
		}
	}
	return bind(ch, n.queue(queue), keyOf(queue), n.deliver())
}

// refusedWith reports whether the broker has refused something with that code.
func refusedWith(err error, code int) bool {
	var refusal *amqp.Error
	return errors.As(err, &refusal) && refusal.Code == code
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
	case amqp.PreconditionFailed, amqp.ResourceError, amqp.NotAllowed:
		return refused(doing, refusal, err)
	default:
		return fmt.Errorf("%s: %w", doing, err)
	}
}

// refused tells apart what brokers refuse with one code, by the reason that they give.
func refused(doing string, refusal *amqp.Error, err error) error {
	switch {
	case strings.Contains(refusal.Reason, "limit in vhost"):
		return fmt.Errorf("%s: the virtual host may have no more queues: raise its limit (rabbitmqctl set_vhost_limits) or delete queues that nobody uses: %w", doing, err)
	case strings.Contains(refusal.Reason, "delivery acknowledgement") && strings.Contains(refusal.Reason, "timed out"):
		return fmt.Errorf("%s: a message was held for longer than the broker's consumer_timeout: raise it, or hold messages for less time: %w", doing, err)
	case refusal.Code == amqp.PreconditionFailed:
		return fmt.Errorf("%s: it is there with other arguments, which cannot be changed: use another namespace, or let it run empty and delete it: %w", doing, err)
	default:
		return fmt.Errorf("%s: %w", doing, err)
	}
}
