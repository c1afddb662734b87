package rabbitmq

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// A subscription makes the broker send messages, at most prefetch that are not settled.
type subscription struct {
	tag      string
	end      context.CancelFunc
	prefetch int
	unacked  int
}

// settled makes room for another message.
func (s *subscription) settled() {
	if s != nil {
		s.unacked--
	}
}

// subscriptions are the subscriptions of one channel. They exist only while a Receive waits: no
// other handle can get the messages that the broker has sent here. A subscription's prefetch cannot
// grow, so a further one joins when more is wanted.
type subscriptions struct {
	queue  string // the broker's name of it
	number uint64 // of the channel
	made   int    // subscriptions so far
	all    []*subscription
	inbox  inbox
	ending bool // the handle ends its subscriptions

	idleSince time.Time     // since when no Receive waits; zero while one does
	idleFor   time.Duration // how long that may last
}

const (
	// idleAfter is how long subscriptions last without a waiting Receive. Then they end, and
	// messages without a Receive go back to the queue. Workers usually call Receive again sooner.
	idleAfter = 50 * time.Millisecond

	// leftAfter replaces idleAfter when the last Receive has ended without messages, since its
	// worker has stopped.
	leftAfter = 2 * time.Millisecond

	// roomyAfter replaces idleAfter when no message has arrived. Other handles lose nothing by the
	// subscriptions then, and new ones cost round trips.
	roomyAfter = 250 * time.Millisecond

	mostPrefetch = 2000
)

// room returns how many messages the broker may still send.
func (s *subscriptions) room() (n int) {
	for _, sub := range s.all {
		n += sub.prefetch - sub.unacked
	}
	return n
}

func (s *subscriptions) has(sub *subscription) bool { return slices.Contains(s.all, sub) }

// An arrival is a delivery, or the end of a subscription.
type arrival struct {
	sub      *subscription
	delivery amqp.Delivery
	ended    bool
}

// order returns a key to sort arrivals by.
func (a *arrival) order() uint64 {
	if a.ended {
		return math.MaxUint64
	}
	return a.delivery.DeliveryTag
}

// An inbox keeps arrivals until the loop takes them in. Prefetch bounds it. It is safe for
// concurrent use.
type inbox struct {
	filled chan struct{} // has an item after an arrival

	mu       sync.Mutex
	arrivals []arrival
}

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

// adjust makes the subscriptions fit the waiters.
func (c *channel) adjust(now time.Time) {
	s := &c.subs
	if wanted := c.loop.waiters.wanted(); wanted > 0 {
		s.idleSince, s.idleFor = time.Time{}, idleAfter
		c.fillers.reset()
		c.dropFillers()
		if lacking := wanted - s.room() - c.unchecked(); lacking > 0 {
			c.subscribe(lacking)
		}
		return
	}
	if s.idleSince.IsZero() {
		s.idleSince = now
	}
	if c.mayUnsubscribe() && now.Sub(s.idleSince) >= c.idleLimit() {
		c.unsubscribe(now)
	}
}

// mayUnsubscribe reports whether there are subscriptions that may end. While the tombstone store is
// asked about messages they may not: the messages would stay here with no Receive to take them.
func (c *channel) mayUnsubscribe() bool { return len(c.subs.all) > 0 && c.query == nil }

// idleLimit returns how long the subscriptions last without a waiting Receive.
func (c *channel) idleLimit() time.Duration {
	s, waiting := &c.subs, len(c.unacked.due)+len(c.unacked.early)+len(c.fillers.kept)
	if s.idleFor == leftAfter || s.room() == 0 || waiting > 0 {
		return s.idleFor
	}
	return roomyAfter
}

// idleEnd returns when adjust may end the subscriptions, and zero if it may not.
func (c *channel) idleEnd() (t time.Time) {
	if !c.mayUnsubscribe() || c.subs.idleSince.IsZero() || c.fillers.publishing {
		return t
	}
	t = c.subs.idleSince.Add(c.idleLimit())
	if c.fillers.next.After(t) {
		return c.fillers.next
	}
	return t
}

// subscribe adds a subscription with room for the missing messages, and at least as much room as
// all others have together. Waiters come one by one, and doubling keeps the number of subscriptions
// small.
func (c *channel) subscribe(lacking int) {
	s := &c.subs
	sub := &subscription{tag: fmt.Sprintf("delayq-%d-%d", s.number, s.made)}
	s.made++
	for _, other := range s.all {
		sub.prefetch += other.prefetch
	}
	sub.prefetch = min(max(sub.prefetch, lacking), mostPrefetch)
	if c.Qos(sub.prefetch, 0, false) != nil {
		return // the channel is lost
	}
	ctx, end := context.WithCancel(context.Background())
	sub.end = end
	deliveries, err := c.ConsumeWithContext(ctx, s.queue, sub.tag, false, false, false, false, nil)
	if err != nil {
		end()
		if err = explain("consuming from "+s.queue, err); refusedWith(err, amqp.AccessRefused) {
			c.loop.waiters.fail(err)
		} else {
			c.loop.q.log.Warn("delayq: subscribing failed; trying again", "err", err)
		}
		return
	}
	s.all = append(s.all, sub)
	c.loop.goroutines.Go(func() {
		for d := range deliveries {
			s.inbox.put(arrival{sub: sub, delivery: d})
		}
		s.inbox.put(arrival{sub: sub, ended: true})
	})
}

// unsubscribe ends the subscriptions once they are full and no filler is being published: a later
// filler would stay in the queue.
func (c *channel) unsubscribe(now time.Time) {
	if !c.full(now) || c.fillers.publishing {
		c.fill(now)
		return
	}
	c.cancelSubscriptions()
	c.giveBack(c.unacked.takeUnleased())
}

// cancelSubscriptions ends all subscriptions and takes in all messages sent before. The client
// library cancels a subscription when its context ends. It keeps a goroutine until then.
func (c *channel) cancelSubscriptions() {
	c.subs.ending = true
	for len(c.subs.all) > 0 {
		sub := c.subs.all[0]
		for sub.end(); c.subs.has(sub); { // the loss of the channel ends it, too
			<-c.subs.inbox.filled
			c.takeIn()
		}
	}
	c.subs.ending = false
	c.dropFillers()
	c.removeStrayFillers()
}
