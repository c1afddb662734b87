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
	// lookAgainAfter is after how long undeliverable is read again although as many messages are there as before.
	lookAgainAfter = time.Minute

	// readAtMost bounds how many messages are in hand while undeliverable is read; the next check goes on.
	readAtMost = 5000

	// quietFor is how long a queue that has messages may send none before they are taken to be in others' hands.
	quietFor = 500 * time.Millisecond

	recoverBatch = 200
)

// recover moves messages from undeliverable to the open queues that they are for, drops fillers, and returns how many of both. A queue may have been
// deleted, or its binding, and declared again since. What a policy took out of its queue stays. A crash between publishing and acknowledging doubles a message.
func (b *Backend) recover(ctx context.Context, s *session, waiting int) (moved int, err error) {
	name := b.names.undeliverable()
	ch, err := s.conn.Channel()
	if err != nil {
		return 0, explain("opening a channel", err)
	}
	defer func() { _ = ch.Close() }() // what is left returns
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
	moved map[*queue]int // with an entry for each that has been declared
	done  int            // fillers, which a policy took out of their queue
	out   []outgoing
	tags  []uint64
}

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
	r.attempts = count(d.Headers[attemptsHeader]) // the broker counts how often undeliverable was read
	m.out, m.tags = append(m.out, q.scheduled(&r, time.Now())), append(m.tags, d.DeliveryTag)
	if len(m.out) < recoverBatch {
		return nil
	}
	return m.flush(ctx)
}

// flush publishes what was taken, and acknowledges what the broker has confirmed.
func (m *mover) flush(ctx context.Context) error {
	var failed error
	for i, err := range m.b.pub.publish(ctx, m.out) {
		if err == nil {
			err = m.ch.Ack(m.tags[i], false)
		}
		if err != nil {
			failed = err
			continue
		}
		m.moved[m.out[i].q]++
	}
	m.out, m.tags = m.out[:0], m.tags[:0]
	return failed
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

// readQueue subscribes to a queue until that many messages have come, or none for as long as quiet says, and returns how many came. It leaves it to f to settle them.
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
		for range deliveries { // those that were on their way
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
