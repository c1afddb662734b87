package rabbitmq

import (
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"
)

// tags are the delivery tags of one channel. Acknowledgements are sent together, and where everything up to a tag is settled,
// as one: a quorum queue's channel holds back those beyond some dozens, and loses them if it closes just then.
type tags struct {
	below   uint64              // everything up to here is settled
	settled map[uint64]struct{} // beyond it
	acks    []uint64            // to be sent
	sent    int                 // how often something was
}

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

// send sends the acks. What comes of it is for who waits for the broker to read them.
func (t *tags) send(ch *amqp.Channel) {
	slices.Sort(t.acks)
	together, _ := slices.BinarySearch(t.acks, t.below+1)
	if together > 0 {
		_ = ch.Ack(t.acks[together-1], true)
		t.sent++
	}
	for _, tag := range t.acks[together:] {
		_ = ch.Ack(tag, false)
		t.sent++
	}
	t.acks = t.acks[:0]
}
