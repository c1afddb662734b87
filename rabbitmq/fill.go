package rabbitmq

import (
	"context"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// A quorum queue's channel sends back what the queue assigns to a subscription while the subscription ends, and the queue counts each as a
// delivery that failed. It does so in RabbitMQ 3.10 and 4.0 alike, and the client hears nothing of it. The queue assigns nothing to a
// subscription that is full. So a handle fills its subscriptions with messages of no content before it ends them: fillers.
// Other handles that get one acknowledge it.

// fillerHeader marks a filler.
const fillerHeader = "delayq-filler"

const (
	// fillPause is how long fillers take from the queue to the handle once the broker has confirmed them. Further rounds wait longer.
	fillPause = 2 * time.Millisecond

	// refusedPause is the same where the broker has not taken them all.
	refusedPause = 50 * time.Millisecond

	// fillWithin bounds how long subscriptions are filled. A broker that takes no messages lets none be filled.
	fillWithin = 2 * time.Second

	// mostFillers are published at once.
	mostFillers = 1000
)

// A filling is what has been done to fill the subscriptions.
type filling struct {
	began  time.Time // zero when nothing has been done
	next   time.Time // when to look whether more is needed
	rounds int
	others int  // fillers that other handles got, or nobody yet
	under  bool // fillers are being published
}

func isFiller(d *amqp.Delivery) bool { return d.Headers[fillerHeader] != nil }

// moreFillers returns fillers to publish. Other handles get some of them, it is not known how many, so each round has twice as many.
func (d *desk) moreFillers() []outgoing {
	f := &d.filling
	n := min(d.expected()<<min(f.rounds, 10), mostFillers)
	f.rounds++
	f.others += n
	now := time.Now()
	return slices.Repeat([]outgoing{{
		route:      immediate(d.q.names, d.q.name),
		Publishing: amqp.Publishing{Headers: amqp.Table{fillerHeader: true}},
		q:          d.q, due: now, made: now,
	}}, n)
}

// keep holds a filler until the subscriptions have ended, or somebody waits.
func (d *desk) keep(h *holding) {
	d.kept = append(d.kept, h)
	d.filling.others--
}

// fill publishes fillers without waiting for them.
func (d *desk) fill(now time.Time) {
	f := &d.filling
	if f.under || now.Before(f.next) {
		return
	}
	if f.began.IsZero() {
		f.began = now
	}
	f.under = true
	out, lasts := d.moreFillers(), d.lasts
	left := f.began.Add(fillWithin).Sub(now)
	d.returning++
	d.over.Go(func() {
		ctx, cancel := context.WithTimeout(lasts, left)
		defer cancel()
		errs := d.q.b.pub.publishOnce(ctx, out)
		_ = d.conclude(func() { d.filling.under, d.filling.next = false, time.Now().Add(d.offered(errs)) })
	})
}

// offered notes what became of fillers, and returns when to look whether more are needed.
func (d *desk) offered(errs []error) (pause time.Duration) {
	if d.filling.rounds == 0 {
		return fillPause // somebody waits again
	}
	pause = fillPause << min(d.filling.rounds-1, 5) // what is still on its way is not to be published again
	for _, err := range errs {
		if err != nil {
			d.filling.others--
			pause = max(pause, refusedPause)
		}
	}
	return pause
}

// full tells whether the queue assigns no more messages to the subscriptions, or whether there is no use in trying.
func (d *desk) full(now time.Time) bool {
	f := &d.filling
	return d.q.b.classic || d.expected() == 0 || !f.began.IsZero() && now.Sub(f.began) >= fillWithin
}

// fillAndWait fills the subscriptions of a handle that closes.
func (d *desk) fillAndWait() {
	ctx, cancel := context.WithTimeout(d.lasts, fillWithin)
	defer cancel()
	d.arriveAll()
	for !d.full(time.Now()) && ctx.Err() == nil {
		errs := d.q.b.pub.publishOnce(ctx, d.moreFillers())
		d.takeInFor(ctx, d.offered(errs))
	}
}

// takeInFor takes in what arrives for a while, until the subscriptions are full.
func (d *desk) takeInFor(ctx context.Context, wait time.Duration) {
	over := time.After(wait)
	for !d.full(time.Now()) {
		select {
		case <-d.inbox.filled:
			d.arriveAll()
		case <-d.lost:
			d.ends()
			return
		case <-ctx.Done():
			return
		case <-over:
			return
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// dropFillers acknowledges the fillers that were kept, which makes room for messages where the subscriptions go on.
func (d *desk) dropFillers() {
	if len(d.kept) == 0 {
		return
	}
	for _, h := range d.kept {
		h.from.unsettled--
		d.tags.ack(h.tag)
	}
	d.kept = nil
	d.confirmAcks(time.Now())
}

// takeFillersOut takes fillers out of the queue that no subscription had room for. Behind other messages they wait for who takes those.
func (d *desk) takeFillersOut() {
	for ; d.filling.others > 0; d.filling.others-- {
		delivery, some, err := d.ch.Get(d.q.names.queue(d.q.name), false)
		if err != nil || !some {
			break
		}
		if !isFiller(&delivery) {
			d.giveBack([]*holding{{record: readRecord(&delivery), tag: delivery.DeliveryTag, from: new(consumer)}})
			break
		}
		d.tags.ack(delivery.DeliveryTag)
	}
	d.filling = filling{under: d.filling.under}
	d.confirmAcks(time.Now())
}
