package rabbitmq

import (
	"context"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// fillerHeader marks a filler: a message without content that a handle publishes to fill its own
// subscriptions before it ends them. A quorum queue counts a failed delivery for each message that
// it assigns to a subscription while that subscription ends. Its channel sends the message back,
// and no client sees it (RabbitMQ 3.10 and 4.0). Without fillers, messages that no handler has seen
// would lose attempts. The queue assigns nothing to a subscription that is full. Any handle that
// gets a filler acknowledges it.
const fillerHeader = "delayq-filler"

const (
	// fillPause is how long fillers take from the queue to the handle once the broker has confirmed
	// them. Each further round doubles it.
	fillPause = 2 * time.Millisecond

	// refusedPause is the least pause after a round in which the broker refused a filler.
	refusedPause = 50 * time.Millisecond

	// fillWithin bounds how long subscriptions are filled. A broker in an alarm takes no messages,
	// so none could be filled.
	fillWithin = 2 * time.Second

	// mostFillers bounds one round.
	mostFillers = 1000

	// fillerExpiresAfter is how long a filler waits in the queue at most, in milliseconds. One that the
	// broker takes late, after the subscriptions have ended, or that a killed process leaves, would stay
	// until a Receive waits. The queue moves it to undeliverable instead, from which it is dropped.
	fillerExpiresAfter = "10000"
)

// fillers are the progress of filling one channel's subscriptions.
type fillers struct {
	kept       []*delivery // until the subscriptions have ended, or a Receive waits
	began      time.Time   // of the first round; zero before
	next       time.Time   // when to check whether another round is needed
	rounds     int
	others     int  // published, but not arrived here
	publishing bool // a round is being published
}

func isFiller(d *amqp.Delivery) bool { return d.Headers[fillerHeader] != nil }

func (f *fillers) keep(d *delivery) {
	f.kept = append(f.kept, d)
	f.others--
}

// reset forgets the rounds so far. It keeps the fillers that have arrived, and the mark of a round
// that is being published.
func (f *fillers) reset() { *f = fillers{kept: f.kept, publishing: f.publishing} }

// nextRound returns how many fillers to publish into that much room. Other handles get an unknown
// part of them, so each round has twice as many.
func (f *fillers) nextRound(room int, now time.Time) int {
	if f.began.IsZero() {
		f.began = now
	}
	n := min(room<<min(f.rounds, 10), mostFillers)
	f.rounds++
	f.others += n
	return n
}

// published notes the outcome of a round, and returns when to check whether another one is needed.
// Fillers still on their way must not be published again, so the pause grows.
func (f *fillers) published(errs []error) (pause time.Duration) {
	if f.rounds == 0 {
		return fillPause // reset meanwhile
	}
	pause = fillPause << min(f.rounds-1, 5)
	for _, err := range errs {
		if err != nil {
			f.others--
			pause = max(pause, refusedPause)
		}
	}
	return pause
}

// expired reports whether it is time to give up.
func (f *fillers) expired(now time.Time) bool {
	return !f.began.IsZero() && now.Sub(f.began) >= fillWithin
}

// full reports whether the queue assigns no more messages to the subscriptions, or filling them has
// taken too long. A classic queue counts no failed deliveries.
func (c *channel) full(now time.Time) bool {
	return c.loop.q.b.classic || c.subs.room() == 0 || c.fillers.expired(now)
}

func (c *channel) newFillers(now time.Time) []outgoing {
	q := c.loop.q
	return slices.Repeat([]outgoing{{
		route:      immediate(q.names, q.name),
		Publishing: amqp.Publishing{Headers: amqp.Table{fillerHeader: true}, Expiration: fillerExpiresAfter},
		q:          q, due: now, made: now,
	}}, c.fillers.nextRound(c.subs.room(), now))
}

// fill publishes a round of fillers in the background.
func (c *channel) fill(now time.Time) {
	f := &c.fillers
	if f.publishing || now.Before(f.next) {
		return
	}
	f.publishing = true
	out := c.newFillers(now)
	left := f.began.Add(fillWithin).Sub(now)
	c.loop.background(func() func() {
		ctx, cancel := context.WithTimeout(c.ctx, left)
		defer cancel()
		errs := c.loop.q.b.pub.publishOnce(ctx, out)
		return func() { f.publishing, f.next = false, time.Now().Add(f.published(errs)) }
	}, nil)
}

// fillAndWait fills the subscriptions of a handle that closes.
func (c *channel) fillAndWait() {
	ctx, cancel := context.WithTimeout(c.ctx, fillWithin)
	defer cancel()
	c.takeIn()
	for !c.full(time.Now()) && ctx.Err() == nil {
		errs := c.loop.q.b.pub.publishOnce(ctx, c.newFillers(time.Now()))
		c.takeInFor(ctx, c.fillers.published(errs))
	}
}

// takeInFor takes in arrivals until the subscriptions are full, for wait at most.
func (c *channel) takeInFor(ctx context.Context, wait time.Duration) {
	over := time.After(wait)
	for !c.full(time.Now()) {
		select {
		case <-c.subs.inbox.filled:
			c.takeIn()
		case <-ctx.Done():
			return
		case <-over:
			return
		}
	}
}

// dropFillers acknowledges the fillers that have arrived. That makes room for messages if the
// subscriptions go on.
func (c *channel) dropFillers() {
	if len(c.fillers.kept) == 0 {
		return
	}
	for _, d := range c.fillers.kept {
		c.settle(d)
	}
	c.fillers.kept = nil
	c.sendAcks()
}

// removeStrayFillers takes fillers out of the queue for which no subscription had room. It stops at
// the first message that is no filler: later fillers stay for the handle that takes that message.
func (c *channel) removeStrayFillers() {
	for ; c.fillers.others > 0; c.fillers.others-- {
		got, ok, err := c.Get(c.subs.queue, false)
		if err != nil || !ok {
			break
		}
		if !isFiller(&got) {
			c.giveBack([]*delivery{{record: readRecord(&got, c.loop.q.b.classic), tag: got.DeliveryTag}})
			break
		}
		c.acks.ack(got.DeliveryTag)
	}
	c.fillers.reset()
	c.sendAcks()
}
