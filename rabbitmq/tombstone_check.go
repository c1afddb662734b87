package rabbitmq

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/delayq/delayq/backend"
)

// A tombstoneCheck asks the tombstone store which messages are cancelled, before a Receive gets
// any. It belongs to the loop, which never waits for the store. One query is in progress at a time,
// and the next one has the messages that arrive meanwhile.
type tombstoneCheck struct {
	*queueTombstones
	prefix    string // of the handle's tokens
	tokens    uint64 // so far
	failing   bool
	notBefore time.Time // when to ask again after a failure
	backoff   backoff
}

// A storeQuery asks the store about messages of a channel.
type storeQuery struct {
	ds        []*delivery
	holds     []Hold
	cancelled []bool
	end       time.Time // of the holds of messages that are not cancelled
	err       error
}

var storeBackoff = backoff{firstPause, time.Second}

// holds returns holds on messages. A message keeps its token while the store may have its hold.
func (k *tombstoneCheck) holds(ds []*delivery) []Hold {
	holds := make([]Hold, len(ds))
	for i, d := range ds {
		if d.token == "" {
			k.tokens++
			d.token = k.prefix + strconv.FormatUint(k.tokens, 36)
		}
		holds[i] = d.hold()
	}
	return holds
}

// failed postpones the next query.
func (k *tombstoneCheck) failed(err error, closing bool) {
	if !k.failing && !closing {
		k.log.Warn("delayq: the tombstone store does not reply; messages wait until it does", "err", err)
	}
	k.failing = true
	k.notBefore = time.Now().Add(k.backoff.next())
}

// next returns when the store may be asked again after a failure, and zero if it may now.
func (k *tombstoneCheck) next(now time.Time) time.Time {
	if k == nil || !k.notBefore.After(now) {
		return time.Time{}
	}
	return k.notBefore
}

// unchecked returns how many messages a Receive may get after the check.
func (c *channel) unchecked() int {
	switch {
	case c.loop.check == nil:
		return 0
	case c.query != nil:
		return len(c.unacked.due) + len(c.query.ds)
	default:
		return len(c.unacked.due)
	}
}

// queryStore asks the store about as many messages as the waiters want.
func (c *channel) queryStore(now time.Time) {
	check, due := c.loop.check, c.unacked.due
	n := min(c.loop.waiters.wanted(), len(due))
	if n == 0 || c.query != nil || now.Before(check.notBefore) {
		return
	}
	q := &storeQuery{ds: slices.Clone(due[:n])}
	q.holds = check.holds(q.ds)
	c.query, c.unacked.due = q, due[n:]
	var lease time.Duration
	for _, w := range c.loop.waiters.all {
		lease = max(lease, w.lease)
	}
	c.loop.background(func() func() {
		q.cancelled, q.end, q.err = check.take(c.loop.life, q.holds, lease)
		return func() { c.checked(q) }
	}, func() { check.release(context.Background(), q.holds) })
}

// checked hands out the messages that are not cancelled, and acknowledges the others.
func (c *channel) checked(q *storeQuery) {
	l := c.loop
	c.query = nil
	switch {
	case l.channel != c || c.IsClosed(): // the broker hands the messages out again
		l.releaseHolds(q.ds)
		return
	case q.err != nil:
		c.unacked.due = slices.Concat(q.ds, c.unacked.due)
		l.check.failed(q.err, l.life.Err() != nil)
		return
	}
	if l.check.failing {
		l.check.log.Info("delayq: the tombstone store replies again")
	}
	l.check.failing, l.check.notBefore, l.check.backoff = false, time.Time{}, storeBackoff
	var free []*delivery
	for i, d := range q.ds {
		if q.cancelled[i] {
			c.settle(d)
		} else {
			free = append(free, d)
		}
	}
	if l.life.Err() == nil {
		free = c.serve(free, time.Now(), q.end)
	}
	l.releaseHolds(free) // their waiters have left
	c.unacked.due = slices.Concat(free, c.unacked.due)
}

// releaseHolds tells the store in the background that no worker has these messages any more.
func (l *channelLoop) releaseHolds(ds []*delivery) {
	var holds []Hold
	for _, d := range ds {
		if d.token != "" {
			holds = append(holds, d.hold())
			d.token = ""
		}
	}
	if len(holds) > 0 {
		l.goroutines.Go(func() { l.check.release(context.Background(), holds) })
	}
}

// extendHeld extends leases in the store first: a lease must not outlast its hold, or a message
// could be cancelled while a worker has it.
func (l *channelLoop) extendHeld(ctx context.Context, ss []*settlement, lease time.Duration) {
	var found []*settlement
	var holds []Hold
	err := l.do(ctx, func() {
		for _, s := range ss {
			if l.find(s) {
				found, holds = append(found, s), append(holds, s.d.hold())
			}
		}
	})
	if err != nil || len(found) == 0 {
		fail(ss, err)
		return
	}
	cancelled, end, err := l.check.take(ctx, holds, lease)
	if err != nil {
		fail(found, err)
		return
	}
	var lapsed []Hold
	err = l.do(ctx, func() {
		until := ceil(time.Now().Add(lease))
		if !until.Before(end) {
			until = end.Truncate(time.Millisecond)
		}
		for i, s := range found {
			// A store that has lost its data may report a leased message as cancelled.
			if l.find(s) && !cancelled[i] {
				l.channel.unacked.extend(s.d, until)
				s.end = until
			} else {
				s.err = backend.ErrLeaseLost
			}
			if l.channel == nil || l.channel.unacked.leased[s.lease.Token] == nil {
				lapsed = append(lapsed, holds[i])
			}
		}
	})
	if err != nil {
		fail(ss, err)
	} else if len(lapsed) > 0 {
		l.check.release(ctx, lapsed)
	}
}
