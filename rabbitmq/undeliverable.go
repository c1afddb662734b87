package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	// lookAgainAfter is how long undeliverable is not read while it has as many messages as before.
	lookAgainAfter = time.Minute

	// readAtMost bounds how many messages one check reads; the next check goes on.
	readAtMost = 5000

	// quietFor is how long the next message of a queue may take to come. After that, other programs
	// are assumed to hold the rest.
	quietFor = 500 * time.Millisecond

	recoverBatch = 200
)

// recover moves messages from undeliverable to their queues, if open, and drops fillers. It returns
// how many of both. Such messages come from queues or bindings that were deleted and declared
// again. Messages that a policy took out of their queue stay. A crash between publishing and
// acknowledging leaves a duplicate.
func (b *Backend) recover(ctx context.Context, s *session, waiting int) (moved int, err error) {
	name := b.names.undeliverable()
	ch, err := s.conn.Channel()
	if err != nil {
		return 0, explain("opening a channel", err)
	}
	defer func() { _ = ch.Close() }() // returns messages that were not acknowledged
	m := &mover{b: b, ch: ch, open: b.open(), moved: make(map[*queue]int)}
	_, err = readQueue(ctx, ch, name, min(waiting, readAtMost), quietFor, func(d *amqp.Delivery) error { return m.take(ctx, s, d) })
	err = errors.Join(err, m.flush(ctx))
	moved = m.done
	for q, n := range m.moved {
		moved += n
		if n > 0 {
			q.log.Warn("delayq: messages that had no queue are back in it", "queue", q.name, "messages", n)
		}
	}
	if err != nil {
		return moved, fmt.Errorf("moving messages from %s to their queues: %w", name, err)
	}
	return moved, nil
}

// A mover moves messages of one channel to their queues.
type mover struct {
	b     *Backend
	ch    *amqp.Channel
	open  map[string]*queue
	moved map[*queue]int // has an entry for each queue that was declared
	done  int            // fillers, which a policy took out of their queue
	batch []undelivered
}

// An undelivered message is on its way to its queue.
type undelivered struct {
	out outgoing
	tag uint64
}

// take adds a message to the batch.
func (m *mover) take(ctx context.Context, s *session, d *amqp.Delivery) error {
	if isFiller(d) {
		m.done++
		return explain("acknowledging a filler", m.ch.Ack(d.DeliveryTag, false))
	}
	q := m.b.addressee(m.open, d)
	if q == nil {
		return nil
	}
	if _, declared := m.moved[q]; !declared {
		if err := q.declareOn(s); err != nil {
			return err
		}
		m.moved[q] = 0
	}
	r := readRecord(d)
	r.attempts = count(d.Headers[attemptsHeader]) // the broker also counts reads of undeliverable
	m.batch = append(m.batch, undelivered{q.scheduled(&r, time.Now()), d.DeliveryTag})
	if len(m.batch) < recoverBatch {
		return nil
	}
	return m.flush(ctx)
}

// flush publishes the batch, and acknowledges the messages that the broker has confirmed.
func (m *mover) flush(ctx context.Context) error {
	out := make([]outgoing, len(m.batch))
	for i, u := range m.batch {
		out[i] = u.out
	}
	var failed error
	for i, err := range m.b.pub.publish(ctx, out) {
		if err == nil {
			err = m.ch.Ack(m.batch[i].tag, false)
		}
		if err != nil {
			failed = err
			continue
		}
		m.moved[out[i].q]++
	}
	m.batch = m.batch[:0]
	return failed
}

// addressee returns the open queue that a message in undeliverable is for, and nil for a message
// that stays there.
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

// readQueue subscribes to a queue until n messages have come, or none for as long as quiet. It
// returns how many came. f settles them.
func readQueue(ctx context.Context, ch *amqp.Channel, queue string, n int, quiet time.Duration, f func(*amqp.Delivery) error) (read int, err error) {
	prefetch := n
	if prefetch > math.MaxUint16 {
		prefetch = 0 // any number
	}
	if err := ch.Qos(prefetch, 0, false); err != nil {
		return 0, explain("reading "+queue, err)
	}
	deliveries, err := ch.Consume(queue, readTag, false, false, false, false, nil)
	if err != nil {
		return 0, explain("reading "+queue, err)
	}
	defer func() {
		_ = ch.Cancel(readTag, false)
		for range deliveries { // drains those on their way
		}
	}()
	timer := time.NewTimer(quiet)
	defer timer.Stop()
	for read < n {
		select {
		case d, open := <-deliveries:
			if !open {
				return read, fmt.Errorf("reading %s: %w", queue, errGone)
			}
			read++
			if err := f(&d); err != nil {
				return read, err
			}
			timer.Reset(quiet)
		case <-timer.C:
			return read, nil
		case <-ctx.Done():
			return read, ctx.Err()
		}
	}
	return read, nil
}

const readTag = "delayq-read"
