package rabbitmq

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
)

// A channel is one AMQP channel and all state that ends with it: subscriptions, unacked deliveries
// and acks on their way. Only its loop uses it, except for ctx.
type channel struct {
	*amqp.Channel
	loop    *channelLoop
	session *session
	closed  chan *amqp.Error

	// ctx ends with the channel. The broker then hands the messages out again: a copy of one that
	// is published after that is a duplicate.
	ctx context.Context
	end context.CancelFunc

	subs    subscriptions
	fillers fillers
	unacked unacked
	acks    pendingAcks
	query   *storeQuery // to the tombstone store, in progress
}

func newChannel(l *channelLoop, s *session, ch *amqp.Channel) *channel {
	c := &channel{
		Channel: ch, loop: l, session: s, closed: ch.NotifyClose(make(chan *amqp.Error, 1)),
		subs:    subscriptions{queue: l.q.names.queue(l.q.name), number: l.opened, inbox: inbox{filled: make(chan struct{}, 1)}, idleFor: idleAfter},
		unacked: newUnacked(),
	}
	c.ctx, c.end = context.WithCancel(context.Background())
	return c
}

// update runs after each event. It returns the time of the next timed event, limit at the latest.
func (c *channel) update(limit time.Time) time.Time {
	if c.IsClosed() { // the broker hands its messages out again; lose follows
		return limit
	}
	c.sendAcks()
	now := time.Now()
	c.endLeases(now)
	c.giveBack(c.unacked.takeFar(now))
	c.unacked.becomeDue(now)
	if c.loop.check == nil {
		c.unacked.due = c.serve(c.unacked.due, now, time.Time{})
	} else {
		c.queryStore(now)
	}
	c.adjust(now)
	for _, t := range []time.Time{c.unacked.next(), c.idleEnd(), c.acks.next(), c.loop.check.next(now)} {
		if !t.IsZero() && t.Before(limit) {
			limit = t
		}
	}
	return limit
}

// sendAcks sends the acks that need not wait, and makes sure that the broker has read them.
func (c *channel) sendAcks() {
	c.acks.flush(c, time.Now(), len(c.unacked.leased), c.unacked.isLeased)
}

// takeIn takes in all arrivals, in the broker's order across subscriptions, so that they are handed
// out together.
func (c *channel) takeIn() {
	all := c.subs.inbox.empty()
	slices.SortStableFunc(all, func(a, b arrival) int { return cmp.Compare(a.order(), b.order()) })
	for _, a := range all {
		c.arrive(a)
	}
}

func (c *channel) arrive(a arrival) {
	if a.ended {
		c.subs.all = slices.DeleteFunc(c.subs.all, func(s *subscription) bool { return s == a.sub })
		// The broker ends a subscription itself when the queue is deleted and, from 4.3 on, when a
		// message was held for longer than consumer_timeout. It would then silently accept an ack
		// of a message that it has given to another handle. Closing the channel ends all leases.
		if !c.subs.ending && a.sub.unacked > 0 {
			_ = c.Close()
		}
		return
	}
	a.sub.unacked++
	if isFiller(&a.delivery) {
		c.fillers.keep(&delivery{tag: a.delivery.DeliveryTag, sub: a.sub})
		return
	}
	d := &delivery{record: readRecord(&a.delivery, c.loop.q.b.classic), tag: a.delivery.DeliveryTag, sub: a.sub}
	if !c.unacked.add(d, time.Now()) {
		c.giveBack([]*delivery{d})
	}
}

// settle acknowledges a delivery, with the next sendAcks.
func (c *channel) settle(d *delivery) {
	d.sub.settled()
	c.acks.ack(d.tag)
}

// serve gives messages to waiting Receives, first come, first served, and returns the rest. No
// lease goes beyond end, unless end is zero.
func (c *channel) serve(ds []*delivery, now, end time.Time) []*delivery {
	ws := &c.loop.waiters
	for len(ws.all) > 0 && len(ds) > 0 {
		w := ws.all[0]
		until := ceil(now.Add(w.lease))
		if !end.IsZero() && until.After(end) {
			break
		}
		ws.all = ws.all[1:]
		if w.claim() {
			n := min(w.limit, len(ds))
			w.got <- received{ds: c.unacked.lease(ds[:n], until)}
			ds = ds[n:]
		}
	}
	return ds
}

// endLeases returns the messages whose lease has ended to the queue. The broker counts an attempt.
func (c *channel) endLeases(now time.Time) {
	expired := c.unacked.takeExpired(now)
	for _, d := range expired {
		d.sub.settled()
		c.acks.settle(d.tag)
		// From RabbitMQ 4.3 on a nack counts no attempt (PR 15387). Before, nack and reject are the
		// same.
		_ = c.Reject(d.tag, true)
	}
	c.loop.releaseHolds(expired)
}

// giveBack publishes copies of messages that no handler has seen, and then acknowledges them, so
// that the return costs no attempt.
func (c *channel) giveBack(ds []*delivery) {
	if len(ds) == 0 {
		return
	}
	c.loop.releaseHolds(ds)
	out := c.copies(ds)
	c.loop.background(func() func() {
		ctx, cancel := context.WithTimeout(context.Background(), giveBackWithin)
		defer cancel()
		errs := c.publish(ctx, out)
		return func() { c.gaveBack(ds, errs) }
	}, nil) // a closed channel gives them back too
}

const (
	// giveBackWithin bounds how long copies of messages that no handler has seen are published. If
	// that fails, the broker counts an attempt, and a copy that it has is a duplicate. A queue that
	// refuses them is no such failure. A broker on a busy machine may say nothing for 10 s. One that
	// says nothing for 15 s loses the connection, by the heartbeat.
	giveBackWithin = 20 * time.Second

	// sendBackWithin bounds how long such a copy waits before it is sent, during an alarm for
	// example. It is no duplicate then.
	sendBackWithin = 5 * time.Second

	// giveBackAgain is the pause before a message that is far too early is given back again. One that
	// stayed until its due time would be here for longer than the broker's consumer_timeout.
	giveBackAgain = 5 * time.Second
)

func (c *channel) gaveBack(ds []*delivery, errs []error) {
	if c.loop.channel != c {
		return
	}
	for i, d := range ds {
		switch {
		case errs[i] == nil:
			c.settle(d)
		case c.subs.has(d.sub): // the broker would send it to this handle again at once
			if !errors.Is(errs[i], backend.ErrOutcomeUnknown) { // else each copy may be there
				d.again = time.Now().Add(giveBackAgain)
			}
			c.unacked.early = append(c.unacked.early, d)
		default:
			d.sub.settled()
			c.acks.settle(d.tag)
			// It counts an attempt before RabbitMQ 4.3, but loses nothing. It fails only if the
			// channel is lost, and then the broker hands the message out again.
			_ = c.Nack(d.tag, false, true)
		}
	}
}

// copies returns the publishings that requeue messages unchanged.
func (c *channel) copies(ds []*delivery) []outgoing {
	out, sendBy := make([]outgoing, len(ds)), time.Now().Add(sendBackWithin)
	for i, d := range ds {
		out[i] = c.loop.q.requeued(&d.record)
		out[i].sendBy = sendBy
	}
	return out
}

// publish publishes copies of messages while the channel lasts. The broker redelivers the messages
// whose copies were not sent by then.
func (c *channel) publish(ctx context.Context, out []outgoing) []error {
	if c.IsClosed() {
		return backend.FailAll(len(out), errUnknown)
	}
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(c.ctx, cancel)
	defer stop()
	errs := c.loop.q.b.pub.publish(bounded, out)
	if ctx.Err() == nil && c.ctx.Err() != nil {
		for i, err := range errs {
			if errors.Is(err, context.Canceled) {
				errs[i] = errUnknown
			}
		}
	}
	return errs
}

// finish closes the channel. Messages that no handler has seen return without costing an attempt.
// The others return by the close.
func (c *channel) finish() {
	c.loop.goroutines.Go(func() {
		defer c.end()
		for range c.closed { // the loop no longer hears why
		}
	})
	defer c.end()
	c.awaitResults()
	c.fillAndWait()
	c.cancelSubscriptions()
	c.acks.hurry(c)
	c.awaitResults()
	ctx, cancel := context.WithTimeout(context.Background(), giveBackWithin)
	defer cancel()
	c.returnUnseen(ctx, c.unacked.takeUnleased())
	c.flushAcks(ctx)
	_ = c.Confirm(false)
	_ = c.Close()
	c.loop.releaseHolds(c.unacked.untilLost())
}

// awaitResults waits for work in progress. A message that was published but not acknowledged when
// the channel closes is a duplicate.
func (c *channel) awaitResults() {
	timeout := time.After(giveBackWithin)
	for c.loop.inProgress > 0 {
		select {
		case result := <-c.loop.results:
			result()
		case <-timeout:
			return
		}
	}
	c.sendAcks()
}

// returnUnseen publishes copies of messages that no handler has seen and acknowledges them.
func (c *channel) returnUnseen(ctx context.Context, ds []*delivery) {
	if len(ds) > 0 {
		for i, err := range c.publish(ctx, c.copies(ds)) {
			if err == nil {
				c.acks.ack(ds[i].tag)
			}
		}
	}
	c.acks.hurry(c)
}

// flushAcks makes sure that the queue has all acks. A message that this brings is requeued.
func (c *channel) flushAcks(ctx context.Context) {
	if c.loop.q.b.classic || c.acks.sent < sentAtOnce {
		return
	}
	// After an error the broker hands messages out again.
	_ = passOnAcks(c.Channel, c.subs.queue, func(got *amqp.Delivery) {
		if isFiller(got) {
			c.acks.ack(got.DeliveryTag)
		} else {
			c.returnUnseen(ctx, []*delivery{{record: readRecord(got, c.loop.q.b.classic), tag: got.DeliveryTag}})
		}
	})
}
