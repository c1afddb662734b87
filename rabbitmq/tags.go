package rabbitmq

import (
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// tags are the delivery tags of one channel. Acknowledgements are sent together, and where everything up to a tag is settled,
// as one: a quorum queue's channel holds back those beyond some dozens, and loses them if it closes just then.
type tags struct {
	below   uint64              // everything up to here is settled
	settled map[uint64]struct{} // beyond it
	acks    []uint64            // to be sent
	sent    int                 // how often something was
	since   time.Time           // acks out of turn wait; zero when none do
	moving  bool                // below has risen since such a wait was in vain
	hasty   bool                // nothing waits any more
}

// acker is what an *amqp.Channel is to acks.
type acker interface {
	Ack(tag uint64, multiple bool) error
}

// waitTurn is how long acks out of turn wait for those before them, to go out with them as one: a quorum queue logs each that comes by
// itself. They wait only for what somebody is at work on, and only while messages are settled in turn, more or less, so that a handler that
// hangs holds up nobody's ack.
const waitTurn = 2 * time.Millisecond

func (t *tags) settle(tag uint64) {
	if t.settled == nil {
		t.settled = make(map[uint64]struct{})
	}
	t.settled[tag] = struct{}{}
	// Deliveries of several subscriptions arrive out of turn. One that has not arrived is not settled.
	for next := t.below + 1; ; next++ {
		if _, ok := t.settled[next]; !ok {
			return
		}
		delete(t.settled, next)
		t.below = next
	}
}

func (t *tags) ack(tag uint64) {
	t.settle(tag)
	t.acks = append(t.acks, tag)
}

func (t *tags) nack(ch *amqp.Channel, tag uint64) {
	t.settle(tag)
	_ = ch.Nack(tag, false, true) // it fails if the channel is lost, and then the broker hands out again
}

// reject gives a message back whose attempt counts. From RabbitMQ 4.3 on it does not with a nack; before, the two are one (PR 15387).
func (t *tags) reject(ch *amqp.Channel, tag uint64) {
	t.settle(tag)
	_ = ch.Reject(tag, true)
}

// send sends the acks, but for those that wait for their turn, where it is somebody's as inHand tells. What comes of it is for who waits for
// the broker to read them.
func (t *tags) send(ch acker, now time.Time, inHand func(tag uint64) bool) {
	slices.Sort(t.acks)
	together, _ := slices.BinarySearch(t.acks, t.below+1)
	if together > 0 {
		_ = ch.Ack(t.acks[together-1], true)
		t.sent++
		t.acks = slices.Delete(t.acks, 0, together)
		t.moving = true
	}
	if !t.waits(now, inHand) {
		t.sendApart(ch)
	}
}

// waits tells whether the acks that are left wait on.
func (t *tags) waits(now time.Time, inHand func(uint64) bool) bool {
	if len(t.acks) == 0 || t.hasty || !t.moving || !inHand(t.below+1) {
		return false
	}
	if t.since.IsZero() {
		t.since = now
	}
	t.moving = now.Sub(t.since) < waitTurn
	return t.moving
}

func (t *tags) sendApart(ch acker) {
	for _, tag := range t.acks {
		_ = ch.Ack(tag, false)
		t.sent++
	}
	t.acks, t.since = t.acks[:0], time.Time{}
}

// hurry sends the acks, and has those that come later wait no more.
func (t *tags) hurry(ch acker) {
	t.hasty = true
	t.send(ch, time.Time{}, nil)
}

// toldUpTo tells whether a call is over whose last tag this is.
func (t *tags) toldUpTo(tag uint64) bool { return tag <= t.below || len(t.acks) == 0 }
