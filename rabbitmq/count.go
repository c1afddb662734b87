package rabbitmq

import (
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
)

// countsWithin is how long the broker waits for the counts of a quorum queue. After that it returns
// zeros, without an error (RabbitMQ 3.10, rabbit_quorum_queue:stat).
const countsWithin = 250 * time.Millisecond

// inspect returns how many messages of a queue wait, and how many subscriptions it has. Zeros that
// took the broker as long as countsWithin may be false: inspect asks again, for up to refusedFor. It
// believes those that took half of it, since round trips vary on a busy machine.
func inspect(ch *amqp.Channel, name string) (amqp.Queue, error) {
	for end := time.Now().Add(refusedFor); ; {
		began := time.Now()
		q, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
		took := time.Since(began)
		switch {
		case err != nil || q.Messages > 0 || q.Consumers > 0:
			return q, err
		case took < countsWithin/2 || took-roundTrip(ch) < countsWithin/2: // quick, or only far away
			return q, nil
		case time.Now().After(end):
			return q, fmt.Errorf("%w: the broker cannot count the messages of %s within %v", backend.ErrUnavailable, name, countsWithin)
		}
	}
}

// roundTrip returns the shortest of a few round trips, by a call that does nothing else here.
func roundTrip(ch *amqp.Channel) time.Duration {
	shortest := time.Hour
	for range 3 {
		began := time.Now()
		if ch.Confirm(false) != nil {
			return 0 // the next call returns the error
		}
		shortest = min(shortest, time.Since(began))
	}
	return shortest
}

// length counts the messages of a queue that wait for a worker. It returns 0 if there is no such
// queue.
func length(conn *amqp.Connection, queue string) (int, error) {
	ch, err := conn.Channel()
	if err != nil {
		return 0, explain("opening a channel", err)
	}
	defer func() { _ = ch.Close() }() // the broker has closed it if the queue does not exist
	q, err := inspect(ch, queue)
	if refusedWith(err, amqp.NotFound) {
		return 0, nil
	}
	return q.Messages, explain("looking at queue "+queue, err)
}
