package rabbitmq

import (
	"cmp"
	"slices"
	"time"
)

// tags are the delivery tags of one channel, and the acks that are to be sent. If everything up to
// a tag is settled, one ack covers it. This matters with a quorum queue: its channel holds back
// acks beyond some dozens, and loses them if it closes just then.
type tags struct {
	below   uint64     // everything up to here is settled
	settled []tagRange // beyond below, in order and with gaps between them
	acks    []uint64   // to be sent
	sent    int        // acks so far
	since   time.Time  // since when acks out of order wait; zero if none do
	moving  bool       // below has risen since acks out of order waited for all of waitTurn
	hasty   bool       // acks do not wait
}

// A tagRange has all tags from first to last. There are no more ranges than unsettled deliveries,
// which the prefetch bounds.
type tagRange struct{ first, last uint64 }

// waitTurn is how long an ack waits for deliveries with lower tags to be settled, so that one ack
// covers all. Without this a quorum queue logs each ack out of order as an entry of its own. Acks
// wait only for leased deliveries, and only while deliveries are settled nearly in order. So a
// handler that hangs does not delay other handlers' acks.
const waitTurn = 2 * time.Millisecond

// settle notes that a delivery is settled. Deliveries of several subscriptions arrive out of order.
// A delivery that has not arrived is not settled.
func (t *tags) settle(tag uint64) {
	if tag <= t.below {
		return
	}
	t.addToRanges(tag)
	if t.settled[0].first == t.below+1 {
		t.below = t.settled[0].last
		t.settled = slices.Delete(t.settled, 0, 1)
	}
}

func (t *tags) addToRanges(tag uint64) {
	rs := t.settled
	byLast := func(r tagRange, tag uint64) int { return cmp.Compare(r.last, tag) }
	i, _ := slices.BinarySearchFunc(rs, tag, byLast)
	follows, precedes := i > 0 && rs[i-1].last+1 == tag, i < len(rs) && rs[i].first <= tag+1
	switch {
	case follows && precedes:
		rs[i-1].last = rs[i].last
		t.settled = slices.Delete(rs, i, i+1)
	case follows:
		rs[i-1].last = tag
	case precedes:
		rs[i].first = min(rs[i].first, tag)
	default:
		t.settled = slices.Insert(rs, i, tagRange{tag, tag})
	}
}

func (t *tags) ack(tag uint64) {
	t.settle(tag)
	t.acks = append(t.acks, tag)
}

// send sends the acks, except those that wait for lower tags. It ignores errors: they mean that the
// channel is lost, and then the broker does not confirm the acks.
func (t *tags) send(ch ackChannel, now time.Time, isLeased func(tag uint64) bool) {
	slices.Sort(t.acks)
	if n, _ := slices.BinarySearch(t.acks, t.below+1); n > 0 {
		_ = ch.Ack(t.acks[n-1], true)
		t.sent++
		t.acks = slices.Delete(t.acks, 0, n)
		t.moving = true
	}
	if t.waits(now, isLeased) {
		return
	}
	for _, tag := range t.acks {
		_ = ch.Ack(tag, false)
		t.sent++
	}
	t.acks, t.since = t.acks[:0], time.Time{}
}

// waits reports whether the acks out of order go on waiting.
func (t *tags) waits(now time.Time, isLeased func(uint64) bool) bool {
	if len(t.acks) == 0 || t.hasty || !t.moving || !isLeased(t.below+1) {
		return false
	}
	if t.since.IsZero() {
		t.since = now
	}
	t.moving = now.Sub(t.since) < waitTurn
	return t.moving
}

// hurry sends all acks. Later acks do not wait either.
func (t *tags) hurry(ch ackChannel) {
	t.hasty = true
	t.send(ch, time.Time{}, nil)
}

// sentUpTo reports whether the acks of a call with this last tag have been sent.
func (t *tags) sentUpTo(tag uint64) bool { return tag <= t.below || len(t.acks) == 0 }
