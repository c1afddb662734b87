package rabbitmq

import (
	"context"
	"time"

	"github.com/delayq/delayq/backend"
)

// A settlement is one lease in a call that settles or extends leases.
type settlement struct {
	lease backend.Lease
	d     *delivery // nil if the lease is not in force
	end   time.Time // of the extended lease
	err   error
}

func settlementsOf(ls []backend.Lease) []*settlement {
	ss := make([]*settlement, len(ls))
	for i, l := range ls {
		ss[i] = &settlement{lease: l}
	}
	return ss
}

// fail sets the error of the settlements that have none.
func fail(ss []*settlement, err error) {
	for _, s := range ss {
		if s.err == nil {
			s.err = err
		}
	}
}

func errorsOf(ss []*settlement) []error {
	errs := make([]error, len(ss))
	for i, s := range ss {
		errs[i] = s.err
	}
	return errs
}

// find looks for the delivery of a lease in force. Without one, the settlement gets ErrLeaseLost.
func (l *channelLoop) find(s *settlement) bool {
	if s.d = nil; l.channel != nil {
		s.d = l.channel.unacked.find(s.lease)
	}
	if s.d == nil {
		s.err = backend.ErrLeaseLost
	}
	return s.d != nil
}

// take marks the deliveries with a lease in force as busy, and returns their settlements. A lease
// that is listed twice is taken once.
func (l *channelLoop) take(ss []*settlement) (taken []*settlement) {
	for _, s := range ss {
		if l.find(s) {
			s.d.busy = true
			taken = append(taken, s)
		}
	}
	return taken
}

// settleAll acknowledges leased deliveries. done gets the outcome of the acks.
func (c *channel) settleAll(ss []*settlement, done chan<- error) {
	var last uint64
	for _, s := range ss {
		delete(c.unacked.leased, s.lease.Token)
		c.settle(s.d)
		last = max(last, s.d.tag)
	}
	c.acks.calls = append(c.acks.calls, pendingAck{last, done})
}

func (l *channelLoop) ack(ctx context.Context, ls []backend.Lease) []error {
	ss := settlementsOf(ls)
	var found []*settlement
	done := make(chan error, 1)
	err := l.do(ctx, func() {
		if found = l.take(ss); len(found) > 0 {
			l.channel.settleAll(found, done)
		}
	})
	if err == nil && len(found) > 0 {
		err = l.awaitAcks(ctx, done)
	}
	fail(ss, err)
	l.tellStore(ctx, l.q.tombstones.settle, found)
	return errorsOf(ss)
}

// awaitAcks waits until the broker has read acks that the loop has taken.
func (l *channelLoop) awaitAcks(ctx context.Context, done <-chan error) error {
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return unknown(ctx.Err())
	case <-l.ended:
	}
	select {
	case err := <-done:
		return err
	default:
		return errCloseUnknown
	}
}

// tellStore reports settlements without an error to the tombstone store.
func (l *channelLoop) tellStore(ctx context.Context, tell func(context.Context, []Hold), ss []*settlement) {
	if l.check == nil {
		return
	}
	var holds []Hold
	for _, s := range ss {
		if s.err == nil {
			holds = append(holds, s.d.hold())
		}
	}
	if len(holds) > 0 {
		tell(ctx, holds)
	}
}

func (l *channelLoop) extend(ctx context.Context, ls []backend.Lease, lease time.Duration) []*settlement {
	ss := settlementsOf(ls)
	if l.check != nil {
		l.extendHeld(ctx, ss, lease)
		return ss
	}
	fail(ss, l.do(ctx, func() {
		until := ceil(time.Now().Add(lease))
		for _, s := range ss {
			if l.find(s) {
				l.channel.unacked.extend(s.d, until)
				s.end = until
			}
		}
	}))
	return ss
}

// replace publishes the message that remake returns in place of each leased one, and acknowledges
// the leased one once the broker has the other. Meanwhile the lease does not end. If publishing
// fails, the lease stays in force. tell reports the replaced messages to the tombstone store.
func (l *channelLoop) replace(ctx context.Context, ls []backend.Lease, tell func(context.Context, []Hold), remake func(i int, r *record) outgoing) []error {
	ss := settlementsOf(ls)
	var found []*settlement
	var c *channel
	err := l.do(ctx, func() {
		if found = l.take(ss); len(found) == 0 {
			return
		}
		c = l.channel
		l.inProgress++
	})
	if err != nil || c == nil {
		fail(ss, err)
		return errorsOf(ss)
	}
	var out []outgoing
	for i, s := range ss {
		if s.d != nil {
			r := s.d.record
			out = append(out, remake(i, &r))
		}
	}
	for i, err := range c.publish(ctx, out) {
		found[i].err = err
	}
	fail(ss, l.finishReplace(ctx, c, found))
	l.tellStore(ctx, tell, found)
	return errorsOf(ss)
}

// finishReplace acknowledges the messages that were replaced, and waits until the broker has read
// that. When the loop has ended meanwhile, the broker may have the replacements.
func (l *channelLoop) finishReplace(ctx context.Context, c *channel, found []*settlement) error {
	done := make(chan error, 1)
	if l.finishWork(func() { c.replaced(found, done) }) != nil {
		return errCloseUnknown
	}
	return l.awaitAcks(ctx, done)
}

// replaced acknowledges messages whose replacement was published. If the channel was lost
// meanwhile, the broker has both.
func (c *channel) replaced(ss []*settlement, done chan<- error) {
	if c.loop.channel != c {
		done <- errAckUnknown
		return
	}
	var published []*settlement
	for _, s := range ss {
		s.d.busy = false
		if s.err == nil {
			published = append(published, s)
		} else {
			c.unacked.noteEnd(s.d.until)
		}
	}
	c.settleAll(published, done)
}
