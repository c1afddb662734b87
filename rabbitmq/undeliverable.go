package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
)

const (
	// lookAgainAfter is the pause between reads of undeliverable while its number of messages is
	// the same.
	lookAgainAfter = time.Minute

	// readPauseFactor is the least pause after reading undeliverable, as a multiple of the time
	// that the read took. Policies may have put any number of messages there.
	readPauseFactor = 4

	// quietFor is how long the next message of a queue may take to come. After that, other programs
	// are assumed to hold the rest.
	quietFor = 500 * time.Millisecond

	// chunkSize is how many messages are read together. It bounds the memory that they take.
	chunkSize = 500
)

// recover moves messages from undeliverable to their queues, if open, and drops fillers. It returns
// how many of both, and whether all were read and no queue was full. Such messages come from queues
// or bindings that were deleted and declared again, or were returned to a queue that was full.
// Messages that a policy took out of their queue stay. A crash between publishing and acknowledging
// leaves a duplicate.
func (b *Backend) recover(ctx context.Context, s *session, waiting int) (moved int, complete bool, err error) {
	name := b.names.undeliverable()
	ch, err := s.conn.Channel()
	if err != nil {
		return 0, false, explain("opening a channel", err)
	}
	defer func() { _ = ch.Close() }() // returns messages that were not acknowledged
	m := &mover{b: b, ch: ch, open: b.openQueues(), moved: make(map[*queue]int), full: make(map[*queue]bool)}
	read := 0
	for more := true; more && err == nil; {
		n := min(waiting-read, chunkSize)
		var got int
		got, err = readQueue(ctx, ch, name, n, quietFor, m.take)
		err = errors.Join(err, m.flush(ctx, s))
		read += got
		more = got == n && read < waiting
	}
	if !b.classic {
		err = errors.Join(err, passOnAcks(ch, name, func(*amqp.Delivery) {}))
	}
	moved = m.dropped
	for q, n := range m.moved {
		moved += n
		if n > 0 {
			q.log.Warn("delayq: messages that had no queue are back in it", "queue", q.name, "messages", n)
		}
	}
	if err != nil {
		return moved, false, fmt.Errorf("moving messages from %s to their queues: %w", name, err)
	}
	return moved, read >= waiting && len(m.full) == 0, nil
}

// A mover moves messages of one channel to their queues. It acknowledges nothing while a chunk is
// read. Otherwise the broker would replace each acknowledged message, and the subscription would
// end with messages on their way. Messages that stay are not acknowledged before all are read, so
// that each chunk has other messages.
type mover struct {
	b       *Backend
	ch      *amqp.Channel
	open    map[string]*queue
	moved   map[*queue]int  // has an entry for each queue that was declared
	full    map[*queue]bool // queues that refuse messages; their messages stay for now
	dropped int             // fillers, which a policy took out of their queue

	// These are of one chunk.
	batch   []undelivered
	fillers []uint64 // tags
}

// An undelivered message is on its way to its queue.
type undelivered struct {
	out outgoing
	tag uint64
}

// take adds a message to the chunk.
func (m *mover) take(d *amqp.Delivery) error {
	if isFiller(d) {
		m.fillers = append(m.fillers, d.DeliveryTag)
	} else if q := m.b.targetQueue(m.open, d); q != nil && !m.full[q] {
		r := readRecord(d, false)
		r.attempts = count(d.Headers[attemptsHeader]) // the broker also counts reads of undeliverable
		m.batch = append(m.batch, undelivered{q.scheduled(&r, time.Now()), d.DeliveryTag})
	}
	return nil
}

// flush publishes the messages of the chunk, and acknowledges those that the broker has confirmed.
func (m *mover) flush(ctx context.Context, s *session) error {
	for _, tag := range m.fillers {
		if err := m.ch.Ack(tag, false); err != nil {
			return explain("acknowledging a filler", err)
		}
		m.dropped++
	}
	out := make([]outgoing, len(m.batch))
	for i, u := range m.batch {
		out[i] = u.out
		q := u.out.q
		if _, declared := m.moved[q]; !declared {
			if err := q.declareOn(s); err != nil {
				return err
			}
			m.moved[q] = 0
		}
	}
	var failed error
	for i, err := range m.b.pub.bounded(ctx, out, m.b.pub.attemptRouted) {
		q := out[i].q
		if errors.Is(err, errRefused) {
			m.full[q] = true
			q.noteRefusalBy(out[i].key)
			continue
		}
		if errors.Is(err, backend.ErrInvalid) {
			q.log.Warn("delayq: a message cannot be moved back to its queue", "queue", q.name, "id", out[i].MessageId, "err", err)
			continue
		}
		if err == nil {
			err = m.ch.Ack(m.batch[i].tag, false)
		}
		if err != nil {
			failed = err
			continue
		}
		m.moved[q]++
	}
	m.batch, m.fillers = m.batch[:0], m.fillers[:0]
	return failed
}

// targetQueue returns the open queue of a message in undeliverable, and nil for a message that
// stays there.
func (b *Backend) targetQueue(open map[string]*queue, d *amqp.Delivery) *queue {
	key := ""
	if name := text(d.Headers[queueHeader]); name != "" {
		key = keyOf(name)
	} else if len(d.RoutingKey) > 0 && d.RoutingKey[0] == '/' { // of an earlier version
		key = reserved + d.RoutingKey
	}
	q := open[key]
	if q == nil || deadLetteredFrom(d, b.names.queue(q.name)) || deadLetteredFrom(d, b.names.dead(q.name)) {
		return nil
	}
	return q
}

// deadLetteredFrom reports whether the broker has taken a message out of a queue.
func deadLetteredFrom(d *amqp.Delivery, queue string) bool {
	deaths, _ := d.Headers["x-death"].([]any)
	for _, death := range deaths {
		if t, ok := death.(amqp.Table); ok && text(t["queue"]) == queue {
			return true
		}
	}
	return false
}

// readChunks is readQueue for any number of messages. f settles none, so that each chunk has other
// messages.
func readChunks(ctx context.Context, ch *amqp.Channel, queue string, n, chunk int, quiet time.Duration, f func(*amqp.Delivery) error) (read int, err error) {
	for read < n {
		wanted := min(n-read, chunk)
		got, err := readQueue(ctx, ch, queue, wanted, quiet, f)
		read += got
		if err != nil || got < wanted {
			return read, err
		}
	}
	return read, nil
}

// readQueue subscribes to a queue until n messages have come, or none for as long as quiet. It
// returns how many came. f keeps or settles them. n is up to 65,535, the largest prefetch: a quorum
// queue takes 0, any number, for 2,000.
func readQueue(ctx context.Context, ch *amqp.Channel, queue string, n int, quiet time.Duration, f func(*amqp.Delivery) error) (read int, err error) {
	if err := ch.Qos(n, 0, false); err != nil {
		return 0, explain("reading "+queue, err)
	}
	tag := fmt.Sprintf("delayq-read-%016x", rand.Uint64()) // a broker counts unacked messages of an earlier subscription with the same tag
	deliveries, err := ch.Consume(queue, tag, false, false, false, false, nil)
	if err != nil {
		return 0, explain("reading "+queue, err)
	}
	defer func() {
		_ = ch.Cancel(tag, false)
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
