package rabbitmq

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// pendingAcks are the acks of one channel that the broker may not have read yet, and the calls that
// wait until it has.
type pendingAcks struct {
	tags
	calls       []pendingAck
	confirmedAt time.Time // when the broker last confirmed acks
	gathering   bool      // acks wait for others
}

// A pendingAck is a call that waits until the broker has read its acks.
type pendingAck struct {
	last uint64 // of its tags
	done chan<- error
}

// ackChannel is the part of an *amqp.Channel that acks use.
type ackChannel interface {
	Ack(tag uint64, multiple bool) error
	Confirm(noWait bool) error
}

// gatherFor is how long acks wait for others after the last round. Each round costs the broker a
// reply, and a quorum queue an entry in its log. It brings as many new messages as it had acks.
const gatherFor = 2 * time.Millisecond

// gathers reports whether acks wait for others. They do while more deliveries are leased than acks
// are waiting.
func (a *pendingAcks) gathers(now time.Time, leased int) bool {
	n := len(a.acks)
	return !a.hasty && 0 < n && n < leased && now.Sub(a.confirmedAt) < gatherFor
}

// flush sends the acks that need not wait, and completes their calls once the broker has read them.
// AMQP has no reply to an ack, but the broker reads in order. So its reply to confirm.select, which
// does nothing else here, says that it has read all acks before.
func (a *pendingAcks) flush(ch ackChannel, now time.Time, leased int, isLeased func(tag uint64) bool) {
	if a.gathering = a.gathers(now, leased); a.gathering {
		return
	}
	a.send(ch, now, isLeased)
	sent := a.takeSent()
	if len(sent) == 0 {
		return
	}
	err := errAckUnknown
	if ch.Confirm(false) == nil {
		err = nil
	}
	a.confirmedAt = time.Now()
	for _, call := range sent {
		call.done <- err
	}
}

// takeSent removes the calls whose acks have all been sent, and returns them.
func (a *pendingAcks) takeSent() (sent []pendingAck) {
	var rest []pendingAck
	for _, call := range a.calls {
		if a.sentUpTo(call.last) {
			sent = append(sent, call)
		} else {
			rest = append(rest, call)
		}
	}
	a.calls = rest
	return sent
}

// fail completes all calls with an error.
func (a *pendingAcks) fail(err error) {
	for _, call := range a.calls {
		call.done <- err
	}
	a.calls = nil
}

// next returns when acks have waited for long enough, and zero if none wait.
func (a *pendingAcks) next() (t time.Time) {
	if a.gathering {
		t = a.confirmedAt.Add(gatherFor)
	}
	if turn := a.since.Add(waitTurn); !a.since.IsZero() && (t.IsZero() || turn.Before(t)) {
		t = turn
	}
	return t
}

// sentAtOnce is how many acks a quorum queue's channel passes on before the queue has confirmed
// the first.
const sentAtOnce = 32

// passOnAcks makes sure that a quorum queue has all acks of a channel. The channel holds back acks
// beyond sentAtOnce, and forgets them when it closes: the broker would redeliver settled messages.
// The broker replies to a get after it has handled all frames before it. By the first reply the
// channel has sent the acks that it held back. By the second the queue has them. A get may bring a
// message, which take keeps or settles.
func passOnAcks(ch *amqp.Channel, queue string, take func(*amqp.Delivery)) error {
	for range 2 {
		got, ok, err := ch.Get(queue, false)
		if err != nil {
			return err
		}
		if ok {
			take(&got)
		}
	}
	return nil
}
