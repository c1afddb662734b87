package rabbitmq

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
)

// A desk is where one goroutine does all that a handle does with its channel: consuming, settling, the timers
// of leases. Others hand it functions to run. A lease is an unsettled delivery of the current channel; its token
// has the channel's number, so that nothing from before a break can settle what came after it.
type desk struct {
	q   *queue
	ops chan func()

	inbox inbox
	left  chan struct{} // somebody waits no more

	// returned takes what is to be done when messages have been published that are then to be acknowledged.
	returned chan func()

	life  context.Context // ends with close
	stop  context.CancelFunc
	begin sync.Once
	ended chan struct{}  // closed when the goroutine has ended, or will not begin
	desk  sync.WaitGroup // the goroutine
	over  sync.WaitGroup // those that work for it

	// The rest belongs to the goroutine.
	connected  chan *session
	session    *session      // of the channel
	ch         *amqp.Channel // nil without a connection
	lost       chan *amqp.Error
	lasts      context.Context // as long as the channel
	ends       context.CancelFunc
	number     uint64 // of the channel
	tags       tags   // of its deliveries
	subs       int    // subscriptions so far
	consumers  []*consumer
	waiting    []*waiter
	buffer     []*holding // due, and nobody's yet
	early      []*holding // not due yet
	leased     map[backend.Token]*holding
	soonest    time.Time  // no lease ends before
	returning  int        // how many returned is to take
	acked      []settling // to be told once the broker has seen their acks
	toldAt     time.Time  // when the broker last answered for some
	gathering  bool       // acks wait for company
	cancelling bool       // its own subscriptions
	idleSince  time.Time  // nobody has waited since; zero while somebody does
	idleFor    time.Duration
	kept       []*holding // fillers
	filling    filling
	timer      *time.Timer
	gate       *gate // nil without a tombstone store
}

// A holding is a delivery that is not settled.
type holding struct {
	record
	tag   uint64
	from  *consumer
	until time.Time // end of the lease
	busy  bool      // on its way to where it will be instead
	token string    // by which the tombstone store may know it
}

// A settling is a call that waits for the broker to see its acks.
type settling struct {
	last uint64 // of its tags
	tell chan<- error
}

func newDesk(q *queue) *desk {
	d := &desk{
		q: q, ops: make(chan func()), inbox: newInbox(), left: make(chan struct{}, 1), idleFor: idleAfter, connected: make(chan *session, 1),
		returned: make(chan func()), ended: make(chan struct{}), leased: make(map[backend.Token]*holding), timer: time.NewTimer(time.Hour),
	}
	d.life, d.stop = context.WithCancel(context.Background())
	d.lasts, d.ends = context.WithCancel(context.Background())
	d.gate = newGate(q.marks)
	return d
}

// do has the desk run f, and waits until it has.
func (d *desk) do(ctx context.Context, f func()) error {
	d.begin.Do(func() { d.desk.Go(d.run) })
	done := make(chan struct{})
	select {
	case d.ops <- func() { f(); close(done) }:
	case <-ctx.Done():
		return ctx.Err()
	case <-d.life.Done():
		return backend.ErrClosed
	}
	<-done
	return nil
}

// conclude has the desk do the last part of what returning counts. It waits until that is done.
func (d *desk) conclude(f func()) error {
	done := make(chan struct{})
	select {
	case d.returned <- func() { d.returning--; f(); close(done) }:
		<-done
		return nil
	case <-d.ended:
		return backend.ErrClosed
	}
}

func (d *desk) close() {
	d.stop()
	d.begin.Do(func() { close(d.ended) })
	d.desk.Wait()
	d.over.Wait()
}

func (d *desk) run() {
	defer close(d.ended)
	defer func() { d.ends() }()
	defer d.timer.Stop()
	d.await()
	for {
		select {
		case op := <-d.ops:
			op()
			d.runWaiting()
		case f := <-d.returned:
			f()
		case s := <-d.connected:
			d.enter(s)
		case <-d.inbox.filled:
			d.arriveAll()
		case <-d.left:
			d.idleFor = leftAfter // unless others wait
		case why := <-d.lost:
			d.q.tellLost(why)
			d.leave()
		case <-d.timer.C:
		case <-d.life.Done():
			d.finish()
			return
		}
		d.tidy()
	}
}

// runWaiting runs what others ask for at the same time, so that they share the round trip.
func (d *desk) runWaiting() {
	for {
		select {
		case op := <-d.ops:
			op()
		default:
			return
		}
	}
}

// arriveAll takes in all that is there, so that it is handed out together, in the order of the broker, whatever the subscription.
func (d *desk) arriveAll() {
	all := d.inbox.empty()
	slices.SortStableFunc(all, func(a, b arrival) int { return cmp.Compare(a.turn(), b.turn()) })
	for _, a := range all {
		d.arrive(a)
	}
}

// tidy does what is due after anything has happened.
func (d *desk) tidy() {
	d.confirmAcks(time.Now())
	now := time.Now()
	d.endLeases(now)
	d.release(now)
	d.handOut(now)
	d.adjust(now)
	d.arm(now)
}

// await asks for the next connection.
func (d *desk) await() {
	d.over.Go(func() {
		if s, err := d.q.sub.session(d.life); err == nil {
			d.connected <- s
		}
	})
}

// enter opens a channel on a new connection. Where that fails the connection is about to break, or the
// queue cannot be declared any more: then it is tried again.
func (d *desk) enter(s *session) {
	ch, err := s.conn.Channel()
	if err == nil {
		d.session, d.ch, d.lost = s, ch, ch.NotifyClose(make(chan *amqp.Error, 1))
		d.number++
		d.tags = tags{}
		d.lasts, d.ends = context.WithCancel(context.Background())
		if err = d.q.declareOn(s); err == nil {
			return
		}
		_ = ch.Close()
	}
	d.ch, d.lost = nil, nil
	if !s.conn.IsClosed() {
		d.q.log.Warn("delayq: opening a channel failed; trying again", "err", err)
	}
	d.awaitAfter(s)
}

// awaitAfter asks for the next connection, or for the same one after a while: what closed the channel may do so again.
func (d *desk) awaitAfter(s *session) {
	if s.conn.IsClosed() {
		d.await()
		return
	}
	d.over.Go(func() {
		if sleep(d.life, channelPause) {
			d.await()
		}
	})
}

const channelPause = 500 * time.Millisecond

// leave forgets all that the lost channel had: the broker hands it out again.
func (d *desk) leave() {
	d.ends() // the broker hands the messages out again: they are not to be published again as well
	d.ch, d.lost, d.consumers = nil, nil, nil
	d.letGo(d.inHand())
	d.gate.forget()
	d.buffer, d.early, d.kept, d.filling = nil, nil, nil, filling{under: d.filling.under}
	d.tags = tags{} // nothing waits for its turn any more, nor does the timer for that
	clear(d.leased)
	d.confirmAcks(time.Now())
	d.awaitAfter(d.session)
}

var errAckUnknown = fmt.Errorf("%w: the connection broke before the broker answered", backend.ErrOutcomeUnknown)

// confirmAcks makes sure that the broker has read the acks: the protocol has no answer to them, but answers what follows.
func (d *desk) confirmAcks(now time.Time) {
	if d.gathering = d.gathers(now); d.gathering {
		return
	}
	if d.ch != nil {
		d.tags.send(d.ch, now, d.isLeased)
	}
	told := d.acksSent()
	if len(told) == 0 {
		return
	}
	err := errAckUnknown
	if d.ch != nil && d.ch.Confirm(false) == nil {
		err = nil
	}
	d.toldAt = time.Now()
	for _, s := range told {
		s.tell <- err
	}
}

// gatherFor is how long after others acks wait for company: each round costs the broker an answer and a quorum queue an entry in its log, and brings as many new
// messages as it had acks.
const gatherFor = 2 * time.Millisecond

// gathers tells whether acks wait for company, which they do while the larger part of what is in hand is somebody's still.
func (d *desk) gathers(now time.Time) bool {
	n := len(d.tags.acks)
	return d.ch != nil && !d.tags.hasty && 0 < n && n < len(d.leased) && now.Sub(d.toldAt) < gatherFor
}

func (d *desk) isLeased(tag uint64) bool {
	return d.leased[backend.Token{Hi: d.number, Lo: tag}] != nil
}

// acksSent takes out the calls whose acks have all been sent, or never will be.
func (d *desk) acksSent() (sent []settling) {
	var rest []settling
	for _, s := range d.acked {
		if d.ch == nil || d.tags.toldUpTo(s.last) {
			sent = append(sent, s)
		} else {
			rest = append(rest, s)
		}
	}
	d.acked = rest
	return sent
}

// finish gives back what no handler has seen, without spending an attempt, and the rest by closing the channel.
func (d *desk) finish() {
	if d.ch == nil {
		return
	}
	d.awaitReturning()
	d.fillAndWait()
	d.cancel()
	d.dropFillers()
	d.takeFillersOut()
	d.tags.hurry(d.ch)
	d.awaitReturning()
	ctx, cancel := context.WithTimeout(context.Background(), giveBackWithin)
	defer cancel()
	d.returnUnseen(ctx, slices.Concat(d.buffer, d.early))
	d.flush(ctx)
	_ = d.ch.Confirm(false)
	_ = d.ch.Close()
	d.letGo(d.inHand())
}

// returnUnseen gives back what no handler has seen.
func (d *desk) returnUnseen(ctx context.Context, hs []*holding) {
	if len(hs) > 0 {
		for i, err := range d.q.b.pub.publish(ctx, d.again(hs)) {
			if err == nil {
				d.tags.ack(hs[i].tag)
			}
		}
	}
	d.tags.hurry(d.ch)
}

// sentAtOnce is how many acks the channel of a quorum queue sends before it has heard that the queue has the first.
const sentAtOnce = 32

// flush sees to it that the queue has all acks. The channel holds back those beyond some dozens, and forgets them when it closes: what
// they acknowledged would come again. A get is answered after what was sent before it. By then the channel has heard of that, and sends the rest, to be
// answered before the second. What a get brings goes back.
func (d *desk) flush(ctx context.Context) {
	if d.q.b.classic || d.tags.sent < sentAtOnce {
		return
	}
	for range 2 {
		delivery, some, err := d.ch.Get(d.q.names.queue(d.q.name), false)
		if err != nil {
			return // the broker hands out again
		}
		switch {
		case some && isFiller(&delivery):
			d.tags.ack(delivery.DeliveryTag)
		case some:
			d.returnUnseen(ctx, []*holding{{record: readRecord(&delivery), tag: delivery.DeliveryTag}})
		}
	}
}

// inHand are the messages that somebody has or could be given.
func (d *desk) inHand() []*holding {
	return slices.AppendSeq(slices.Clone(d.buffer), maps.Values(d.leased))
}

// awaitReturning sees to it that what was published is acknowledged too, lest it be there twice.
func (d *desk) awaitReturning() {
	timeout := time.After(giveBackWithin)
	for d.returning > 0 {
		select {
		case f := <-d.returned:
			f()
		case <-timeout:
			return
		}
	}
	d.confirmAcks(time.Now())
}

// giveBackWithin bounds the return of what nobody has seen. If it fails, the broker counts an attempt.
const giveBackWithin = 5 * time.Second

// again are messages on their way to where they were.
func (d *desk) again(hs []*holding) []outgoing {
	out := make([]outgoing, len(hs))
	for i, h := range hs {
		out[i] = d.q.scheduled(&h.record, time.Now())
	}
	return out
}

// arm sets the timer to the next thing that happens by itself.
func (d *desk) arm(now time.Time) {
	next := now.Add(time.Hour)
	sooner := func(t time.Time) {
		if t.Before(next) {
			next = t
		}
	}
	if len(d.leased) > 0 {
		sooner(d.soonest)
	}
	for _, h := range d.early {
		sooner(h.due)
	}
	if d.subscribes() && !d.idleSince.IsZero() && !d.filling.under {
		sooner(later(d.idleSince.Add(d.patience()), d.filling.next))
	}
	if d.gathering {
		sooner(d.toldAt.Add(gatherFor))
	}
	if !d.tags.since.IsZero() {
		sooner(d.tags.since.Add(waitTurn))
	}
	if d.gate != nil && d.gate.notTill.After(now) {
		sooner(d.gate.notTill)
	}
	d.timer.Reset(max(next.Sub(now), 0))
}
