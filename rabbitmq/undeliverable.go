package rabbitmq

import (
	"context"
	"fmt"
	"math"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	// lookAgainAfter is after how long undeliverable is read again although as many messages are there as before.
	lookAgainAfter = time.Minute

	// readAtMost bounds how many messages are in hand while undeliverable is read; the next check goes on.
	readAtMost = 5000

	// quietFor is how long a queue that has messages may send none before they are taken to be in others' hands.
	quietFor = 500 * time.Millisecond

	recoverBatch = 200
)

// recover moves messages from undeliverable to the open queues that they are for, and returns how many it left. A queue may have been
// deleted, or its binding, and declared again since. What a policy took out of its queue stays. A crash between publishing and acknowledging doubles a message.
func (b *Backend) recover(ctx context.Context, s *session, waiting int) (left int, err error) {
	open, declared, moved := b.open(), make(map[*queue]bool), make(map[string]int)
	name := b.names.undeliverable()
	ch, err := s.conn.Channel()
	if err != nil {
		return 0, explain("opening a channel", err)
	}
	defer func() { _ = ch.Close() }() // what is left returns
	var out []outgoing
	var tags []uint64
	flush := func() error {
		for i, err := range b.pub.publish(ctx, out) {
			if err != nil {
				return fmt.Errorf("moving a message of queue %s from %s: %w", out[i].q.name, name, err)
			}
			if err := ch.Ack(tags[i], false); err != nil {
				return explain("acknowledging what was moved from "+name, err)
			}
			moved[out[i].q.name]++
		}
		out, tags = out[:0], tags[:0]
		return nil
	}
	err = readQueue(ctx, ch, name, min(waiting, readAtMost), func(d *amqp.Delivery) error {
		q := b.addressee(open, d)
		if q == nil {
			left++
			return nil
		}
		if !declared[q] {
			if err := q.declareOn(s); err != nil {
				return err
			}
			declared[q] = true
		}
		r := readRecord(d)
		r.attempts = count(d.Headers[attemptsHeader]) // the broker counts how often undeliverable was read
		if out, tags = append(out, q.scheduled(&r, time.Now())), append(tags, d.DeliveryTag); len(out) < recoverBatch {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	for queue, n := range moved {
		b.pub.link.log.Warn("delayq: messages that had no queue are back in it", "queue", queue, "messages", n)
	}
	return left, err
}

// addressee returns the open queue that a message in undeliverable is for, nil for one that is to stay.
func (b *Backend) addressee(open map[string]*queue, d *amqp.Delivery) *queue {
	key := ""
	if name := text(d.Headers[queueHeader]); name != "" {
		key = keyOf(name)
	} else if len(d.RoutingKey) > 0 && d.RoutingKey[0] == '/' { // of an earlier version
		key = reserved + d.RoutingKey
	}
	q := open[key]
	if q == nil || hasDiedIn(d, b.names.queue(q.name)) || hasDiedIn(d, b.names.dead(q.name)) {
		return nil
	}
	return q
}

// hasDiedIn reports whether the broker has taken a message out of a queue.
func hasDiedIn(d *amqp.Delivery, queue string) bool {
	deaths, _ := d.Headers["x-death"].([]any)
	for _, death := range deaths {
		if t, ok := death.(amqp.Table); ok && text(t["queue"]) == queue {
			return true
		}
	}
	return false
}

// readQueue subscribes to a queue until that many messages have come, or none do any more. It leaves it to f to settle them.
func readQueue(ctx context.Context, ch *amqp.Channel, queue string, n int, f func(*amqp.Delivery) error) error {
	const tag = "delayq-read"
	if err := ch.Qos(min(n, math.MaxUint16), 0, false); err != nil {
		return explain("reading "+queue, err)
	}
	deliveries, err := ch.Consume(queue, tag, false, false, false, false, nil)
	if err != nil {
		return explain("reading "+queue, err)
	}
	defer func() {
		_ = ch.Cancel(tag, false)
		for range deliveries { // those that were on their way; the client waits for somebody to take them
		}
	}()
	quiet := time.NewTimer(quietFor)
	defer quiet.Stop()
	for range n {
		select {
		case d, open := <-deliveries:
			if !open {
				return fmt.Errorf("reading %s: %w", queue, errGone)
			}
			if err := f(&d); err != nil {
				return err
			}
			quiet.Reset(quietFor)
		case <-quiet.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
