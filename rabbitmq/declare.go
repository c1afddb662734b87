package rabbitmq

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
)

func declareExchange(ch *amqp.Channel, name, kind string, args amqp.Table) error {
	return explain("declaring exchange "+name, ch.ExchangeDeclare(name, kind, true, false, false, false, args))
}

// declareFanout declares a fanout exchange and waits for no reply. If that fails, the broker closes
// the channel.
func declareFanout(ch *amqp.Channel, name string) error {
	return explain("declaring exchange "+name, ch.ExchangeDeclare(name, "fanout", true, false, false, true, nil))
}

func declareQueue(ch *amqp.Channel, name string, args amqp.Table) error {
	_, err := ch.QueueDeclare(name, true, false, false, false, args)
	return explain("declaring queue "+name, err)
}

func bind(ch *amqp.Channel, queue, key, exchange string) error {
	return explain("binding queue "+queue+" to exchange "+exchange, ch.QueueBind(queue, key, exchange, false, nil))
}

// declareWaiting declares a queue whose messages wait for a fixed time and then go to an exchange.
// At-least-once dead-lettering requires a quorum queue with overflow reject-publish. Other queues
// lose messages when the broker crashes.
func declareWaiting(ch *amqp.Channel, name string, wait time.Duration, next string, classic bool) error {
	args := amqp.Table{"x-message-ttl": wait.Milliseconds(), "x-dead-letter-exchange": next}
	if !classic {
		args["x-queue-type"] = "quorum"
		args["x-dead-letter-strategy"] = "at-least-once"
		args["x-overflow"] = "reject-publish"
	}
	return declareQueue(ch, name, args)
}

// noLimit is how often a message may be redelivered. RabbitMQ 4 drops it after 20 times by default.
const noLimit = math.MaxInt32

// keepingArgs returns the arguments of a queue that keeps messages until they are settled.
func keepingArgs(classic bool) amqp.Table {
	if classic {
		return nil
	}
	return amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": int64(noLimit)}
}

// declareShared declares the shared topology: the exchanges and queues that all queues of a
// namespace share. A level stops when a message cannot leave it, so a message without a queue goes
// to undeliverable.
func declareShared(ch *amqp.Channel, n names, d delayer, classic bool) error {
	lost := n.undeliverable()
	if err := declareExchange(ch, lost, "fanout", nil); err != nil {
		return err
	}
	if err := declareQueue(ch, lost, keepingArgs(classic)); err != nil {
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

// declareOwn declares a queue and the queue of its dead letters, on its own channels since a
// refusal closes them. An operator's policy may take messages out of both, which then go to
// undeliverable. Queues that an earlier version has declared lack that argument, and stay as they
// are.
func declareOwn(conn *amqp.Connection, n names, queue string, classic bool) error {
	ch, err := conn.Channel()
	if err != nil {
		return explain("opening a channel", err)
	}
	defer func() { _ = ch.Close() }()
	args := amqp.Table{"x-dead-letter-exchange": n.undeliverable()}
	maps.Copy(args, keepingArgs(classic))
	for _, name := range []string{n.queue(queue), n.dead(queue)} {
		err := declareQueue(ch, name, args)
		if refusedWith(err, amqp.PreconditionFailed) {
			again, errAgain := conn.Channel()
			if errAgain != nil {
				return explain("opening a channel", errAgain)
			}
			ch = again
			if declareQueue(ch, name, keepingArgs(classic)) == nil {
				err = nil
			}
		}
		if err != nil {
			return err
		}
	}
	return bind(ch, n.queue(queue), keyOf(queue), n.deliver())
}

// refusedWith reports whether the broker returned an error with that code.
func refusedWith(err error, code int) bool {
	var refusal *amqp.Error
	return errors.As(err, &refusal) && refusal.Code == code
}

// explain adds the failed operation to an error and, if the broker refused it, a remedy.
func explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	var refusal *amqp.Error
	if errors.As(err, &refusal) {
		doing += remedy(refusal)
	}
	return fmt.Errorf("%s: %w", doing, classified(err))
}

// classified marks the error of a connection that was refused or broke.
func classified(err error) error {
	if !errors.Is(err, backend.ErrUnavailable) && (refusedWith(err, amqp.ConnectionForced) || refusedWith(err, amqp.FrameError) ||
		refusedWith(err, amqp.ChannelError) || refusedWith(err, amqp.InternalError) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || onNetwork(err)) {
		return fmt.Errorf("%w: %w", backend.ErrUnavailable, err)
	}
	return err
}

// onNetwork reports whether a connection failed below TLS, whose alerts have the same type.
func onNetwork(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op != "remote error" && op.Op != "local error"
}

// remedy returns advice about a refusal. Brokers use some codes for several reasons.
func remedy(refusal *amqp.Error) string {
	switch code := refusal.Code; {
	case code == amqp.AccessRefused:
		return ": the user lacks a permission (configure to declare; write to publish and to bind a queue; read to consume and to bind to an exchange)"
	case code != amqp.PreconditionFailed && code != amqp.ResourceError && code != amqp.NotAllowed:
		return ""
	case strings.Contains(refusal.Reason, "limit in vhost"):
		return ": the virtual host may have no more queues: raise its limit (rabbitmqctl set_vhost_limits) or delete unused queues"
	case strings.Contains(refusal.Reason, "delivery acknowledgement") && strings.Contains(refusal.Reason, "timed out"):
		return ": a message was held for longer than the broker's consumer_timeout: raise it, or hold messages for less time"
	case sizeLimit(refusal) > 0:
		return ": another message was larger than the broker's max_message_size"
	case code == amqp.PreconditionFailed:
		return ": it exists with other arguments, which cannot be changed: use another namespace, or let it run empty and delete it"
	default:
		return ""
	}
}
