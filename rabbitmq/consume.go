package rabbitmq

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
)

// A consumer is one subscription to the queue. The broker sends it up to prefetch messages that are not settled. There are some
// only while somebody waits for messages: what is sent here cannot be taken elsewhere. When more is wanted, another one
// joins.
type consumer struct {
	tag       string
	end       context.CancelFunc
	prefetch  int
	unsettled int
}

// An arrival is a delivery, or the end of a subscription.
type arrival struct {
	from     *consumer
	delivery amqp.Delivery
	ended    bool
}

// turn is where it comes among others.
func (a *arrival) turn() uint64 {
	if a.ended {
		return math.MaxUint64
	}
	return a.delivery.DeliveryTag
}

// An inbox is what has arrived and is not taken in. Prefetch bounds it.
type inbox struct {
	filled chan struct{} // has something while there is something

	mu       sync.Mutex
	arrivals []arrival
}

func newInbox() inbox { return inbox{filled: make(chan struct{}, 1)} }

func (b *inbox) put(a arrival) {
	b.mu.Lock()
	b.arrivals = append(b.arrivals, a)
	b.mu.Unlock()
	select {
	case b.filled <- struct{}{}:
	default:
	}
}

func (b *inbox) empty() []arrival {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.arrivals
	b.arrivals = nil
	return all
}

const (
	// idleAfter is how long nobody has to wait for messages before those that arrive go back: workers come again.
	idleAfter = 50 * time.Millisecond

	// leftAfter is the same where the last one that waited has left without messages.
	leftAfter = 2 * time.Millisecond

	// roomyAfter is the same where the subscriptions have room and nothing has arrived: those at work are likely to come again.
	roomyAfter = 250 * time.Millisecond

	// holdAtMost is how early a message may come to be held here. Levels are some tenths of a millisecond early; what
	// is earlier than this has a delay longer than the levels', and goes through them once more.
	holdAtMost = time.Second

	mostPrefetch = 2000
)

// A waiter is one Receive.
type waiter struct {
	limit int
	lease time.Duration
	over  atomic.Bool // it was given messages or an error, or has left
	got   chan []backend.Delivery
	err   error // set before got has nothing
}

func (d *desk) receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	w := &waiter{limit: limit, lease: lease, got: make(chan []backend.Delivery, 1)}
	if err := d.do(ctx, func() { d.waiting = append(d.waiting, w) }); err != nil {
		return nil, err
	}
	select {
	case ds := <-w.got:
		return ds, w.err
	case <-ctx.Done():
		return d.dismiss(w, ctx.Err())
	case <-d.life.Done():
		return d.dismiss(w, backend.ErrClosed)
	}
}

// dismiss ends a wait. What was given in the same moment is taken all the same.
func (d *desk) dismiss(w *waiter, err error) ([]backend.Delivery, error) {
	if !w.over.CompareAndSwap(false, true) {
		return <-w.got, w.err
	}
	select {
	case d.left <- struct{}{}:
	default:
	}
	return nil, err
}

// arrive takes a delivery in.
func (d *desk) arrive(a arrival) {
	if !d.subscribed(a.from) {
		return // on a channel that was lost
	}
	if a.ended {
		d.unsubscribed(a.from)
		return
	}
	a.from.unsettled++
	if isFiller(&a.delivery) {
		d.keep(&holding{tag: a.delivery.DeliveryTag, from: a.from})
		return
	}
	h := &holding{record: readRecord(&a.delivery), tag: a.delivery.DeliveryTag, from: a.from}
	switch wait := time.Until(h.due); {
	case wait <= 0:
		d.buffer = append(d.buffer, h)
	case wait <= holdAtMost:
		d.early = append(d.early, h)
	default:
		d.giveBack([]*holding{h})
	}
}

// unsubscribed forgets a subscription that has ended. The broker ends it when the queue is deleted, and, from 4.3 on, when a message was held for longer than
// consumer_timeout. Then what is in hand is nobody's here any more, but the broker would take an ack of it without a word: the channel ends, and with it all leases.
func (d *desk) unsubscribed(c *consumer) {
	d.consumers = slices.DeleteFunc(d.consumers, func(other *consumer) bool { return other == c })
	if !d.cancelling && c.unsettled > 0 {
		_ = d.ch.Close()
	}
}

func (d *desk) subscribed(c *consumer) bool { return slices.Contains(d.consumers, c) }

// release moves what has become due.
func (d *desk) release(now time.Time) {
	rest := d.early[:0]
	for _, h := range d.early {
		if h.due.After(now) {
			rest = append(rest, h)
		} else {
			d.buffer = append(d.buffer, h)
		}
	}
	clear(d.early[len(rest):])
	d.early = rest
}

// handOut gives waiters what there is, or asks whether they may have it.
func (d *desk) handOut(now time.Time) {
	if d.gate == nil {
		d.buffer = d.serve(d.buffer, now, time.Time{})
	} else {
		d.ask(now)
	}
}

// serve gives messages to waiters, first come, first served, and returns the rest. No lease goes beyond end, if there is one.
func (d *desk) serve(hs []*holding, now, end time.Time) []*holding {
	for len(d.waiting) > 0 && len(hs) > 0 {
		w := d.waiting[0]
		until := ceil(now.Add(w.lease))
		if !end.IsZero() && until.After(end) {
			break
		}
		d.waiting = d.waiting[1:]
		if w.over.CompareAndSwap(false, true) {
			n := min(w.limit, len(hs))
			w.got <- d.lease(hs[:n], until)
			hs = hs[n:]
		}
	}
	return hs
}

// lease puts messages under a lease.
func (d *desk) lease(hs []*holding, until time.Time) []backend.Delivery {
	d.endsAt(until)
	ds := make([]backend.Delivery, len(hs))
	for i, h := range hs {
		h.until = until
		h.attempts++
		token := backend.Token{Hi: d.number, Lo: h.tag}
		d.leased[token] = h
		ds[i] = backend.Delivery{
			ID: h.id, Body: bytes.Clone(h.body), Headers: maps.Clone(h.headers), Due: h.due, Attempt: h.attempts, Token: token, Until: h.until,
		}
	}
	return ds
}

// adjust makes the subscriptions fit those who wait.
func (d *desk) adjust(now time.Time) {
	wanted := d.wanted()
	if wanted > 0 {
		d.idleSince, d.idleFor = time.Time{}, idleAfter
		d.filling = filling{under: d.filling.under}
		d.dropFillers()
		if lacking := wanted - d.expected() - d.atHand(); lacking > 0 && d.ch != nil {
			d.subscribe(lacking)
		}
		return
	}
	if d.idleSince.IsZero() {
		d.idleSince = now
	}
	if d.subscribes() && now.Sub(d.idleSince) >= d.patience() {
		d.unsubscribe(now)
	}
}

// subscribes tells whether there are subscriptions that may end.
func (d *desk) subscribes() bool { return len(d.consumers) > 0 && !d.asking() }

// patience is how long nobody has to wait before the subscriptions end.
func (d *desk) patience() time.Duration {
	if d.idleFor == leftAfter || d.expected() == 0 || len(d.buffer)+len(d.early)+len(d.kept) > 0 {
		return d.idleFor
	}
	return roomyAfter
}

// unsubscribe ends the subscriptions as soon as they are full, and no fillers are on their way: those would stay in the queue.
func (d *desk) unsubscribe(now time.Time) {
	if !d.full(now) || d.filling.under {
		d.fill(now)
		return
	}
	d.cancel()
	d.dropFillers()
	d.takeFillersOut()
	d.giveBack(slices.Concat(d.buffer, d.early))
	d.buffer, d.early = nil, nil
}

// expected is how many messages the broker may send as things are.
func (d *desk) expected() (n int) {
	for _, c := range d.consumers {
		n += c.prefetch - c.unsettled
	}
	return n
}

// wanted is how many messages those ask for who still wait.
func (d *desk) wanted() (n int) {
	rest := d.waiting[:0]
	for _, w := range d.waiting {
		if !w.over.Load() {
			rest = append(rest, w)
			n += w.limit
		}
	}
	clear(d.waiting[len(rest):])
	d.waiting = rest
	return min(n, mostPrefetch)
}

// subscribe makes a further subscription, at least as large as all that there are: those who wait come one by one.
func (d *desk) subscribe(lacking int) {
	c := &consumer{tag: fmt.Sprintf("delayq-%d-%d", d.number, d.subs)}
	d.subs++
	for _, other := range d.consumers {
		c.prefetch += other.prefetch
	}
	c.prefetch = min(max(c.prefetch, lacking), mostPrefetch)
	if d.ch.Qos(c.prefetch, 0, false) != nil {
		return // the channel is about to be lost
	}
	var ctx context.Context
	ctx, c.end = context.WithCancel(context.Background())
	deliveries, err := d.ch.ConsumeWithContext(ctx, d.q.names.queue(d.q.name), c.tag, false, false, false, false, nil)
	if err != nil {
		c.end()
		d.refuse(explain("consuming from "+d.q.names.queue(d.q.name), err))
		return
	}
	d.consumers = append(d.consumers, c)
	d.over.Go(func() { d.forward(c, deliveries) })
}

// refuse answers those who wait with what the broker refuses to a user. Other failures are of the moment.
func (d *desk) refuse(err error) {
	var refusal *amqp.Error
	if !errors.As(err, &refusal) || refusal.Code != amqp.AccessRefused {
		d.q.log.Warn("delayq: subscribing failed; trying again", "err", err)
		return
	}
	for _, w := range d.waiting {
		if w.over.CompareAndSwap(false, true) {
			w.err = err
			w.got <- nil
		}
	}
}

// forward passes deliveries on until the subscription ends.
func (d *desk) forward(c *consumer, deliveries <-chan amqp.Delivery) {
	for delivery := range deliveries {
		d.inbox.put(arrival{from: c, delivery: delivery})
	}
	d.inbox.put(arrival{from: c, ended: true})
}

// cancel ends all subscriptions and takes in what was on its way. The client library cancels when a subscription's context ends, and keeps a goroutine for
// each whose context does not end.
func (d *desk) cancel() {
	d.cancelling = true
	defer func() { d.cancelling = false }()
	for len(d.consumers) > 0 {
		c := d.consumers[0]
		for c.end(); d.subscribed(c); { // as all do when the channel is lost
			<-d.inbox.filled
			d.arriveAll()
		}
	}
}
