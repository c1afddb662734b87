package rabbitmq

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/delayq/delayq/backend"
)

// A gate is where the desk asks the tombstone store about messages before anybody gets them. It belongs to the desk's goroutine, which never
// waits for the store: one question is under way at a time, and what arrives meanwhile is the next.
type gate struct {
	*marks
	name    string    // of the handle, in tokens
	count   uint64    // of tokens
	asked   *question // that is under way
	notTill time.Time // when the store may be asked again after a failure
	pause   time.Duration
}

func newGate(m *marks) *gate {
	if m == nil {
		return nil
	}
	return &gate{marks: m, name: fmt.Sprintf("%016x-", rand.Uint64())}
}

// holds are what the store is told of messages. One that has no token yet gets one: it keeps it while it is not known
// whether the store has heard of it.
func (g *gate) holds(hs []*holding) []Hold {
	holds := make([]Hold, len(hs))
	for i, h := range hs {
		if h.token == "" {
			g.count++
			h.token = g.name + strconv.FormatUint(g.count, 36)
		}
		holds[i] = h.hold()
	}
	return holds
}

func (h *holding) hold() Hold { return Hold{ID: h.id, Stamp: h.stamp, Token: h.token} }

// atHand is how many messages are here that somebody will get, or that are cancelled.
func (d *desk) atHand() int {
	switch {
	case d.gate == nil:
		return 0
	case d.asking():
		return len(d.buffer) + len(d.gate.asked.hs)
	default:
		return len(d.buffer)
	}
}

func (d *desk) asking() bool { return d.gate != nil && d.gate.asked != nil }

// A question is about some messages of the channel.
type question struct {
	hs        []*holding
	holds     []Hold
	cancelled []bool
	end       time.Time // until when those are held that are not cancelled
	err       error
}

// ask asks about as many messages as those want who wait.
func (d *desk) ask(now time.Time) {
	g := d.gate
	n := min(d.wanted(), len(d.buffer))
	if n == 0 || d.asking() || now.Before(g.notTill) {
		return
	}
	q := &question{hs: slices.Clone(d.buffer[:n])}
	d.buffer, g.asked, q.holds = d.buffer[n:], q, g.holds(q.hs)
	lease := d.longestLease()
	d.returning++
	d.over.Go(func() {
		q.cancelled, q.end, q.err = g.take(d.life, q.holds, lease)
		if d.conclude(func() { d.answered(q) }) != nil {
			g.release(context.Background(), q.holds)
		}
	})
}

func (d *desk) longestLease() (lease time.Duration) {
	for _, w := range d.waiting {
		lease = max(lease, w.lease)
	}
	return lease
}

// answered hands out what may be, and drops the rest.
func (d *desk) answered(q *question) {
	if d.gate.asked != q { // a break has taken them away, and they come again by themselves
		d.letGo(q.hs)
		return
	}
	d.gate.asked = nil
	if q.err != nil {
		d.buffer = slices.Concat(q.hs, d.buffer)
		d.gate.failed(q.err, d.life.Err() != nil)
		return
	}
	d.gate.recovered()
	free := d.dropCancelled(q)
	if d.life.Err() == nil {
		free = d.serve(free, time.Now(), q.end)
	}
	d.letGo(free) // who waited has left
	d.buffer = slices.Concat(free, d.buffer)
}

// forget leaves the question that is under way to itself: its messages are with the broker again.
func (g *gate) forget() {
	if g != nil {
		g.asked = nil
	}
}

// dropCancelled returns the messages that are not cancelled, and ends the others.
func (d *desk) dropCancelled(q *question) (free []*holding) {
	for i, h := range q.hs {
		if q.cancelled[i] {
			d.drop(h)
		} else {
			free = append(free, h)
		}
	}
	return free
}

// drop ends a cancelled message.
func (d *desk) drop(h *holding) {
	h.from.unsettled--
	d.tags.ack(h.tag)
}

// failed puts the next question off. The messages stay here, or with the broker if nobody waits for them any more.
func (g *gate) failed(err error, closing bool) {
	if g.pause == 0 && !closing {
		g.log.Warn("delayq: the tombstone store does not answer; messages wait until it does", "err", err)
	}
	g.pause = min(max(2*g.pause, firstPause), time.Second)
	g.notTill = time.Now().Add(g.pause)
}

func (g *gate) recovered() {
	if g.pause != 0 {
		g.log.Info("delayq: the tombstone store answers again")
	}
	g.pause, g.notTill = 0, time.Time{}
}

// letGo tells the store that messages are in nobody's hands any more.
func (d *desk) letGo(hs []*holding) {
	var holds []Hold
	for _, h := range hs {
		if h.token != "" {
			holds = append(holds, h.hold())
			h.token = ""
		}
	}
	if len(holds) > 0 {
		d.over.Go(func() { d.gate.release(context.Background(), holds) })
	}
}

// prolong extends leases, in the store first: no lease ever lasts longer than the hold. One that ends meanwhile takes the hold
// with it.
func (d *desk) prolong(ctx context.Context, ls []backend.Lease, lease time.Duration, ends []time.Time) []error {
	errs := make([]error, len(ls))
	var holds, lapsed []Hold
	var at []int
	if err := d.do(ctx, func() { holds, at = d.heldMarks(ls, errs) }); err != nil {
		return backend.FailAll(len(ls), err)
	}
	if len(holds) == 0 {
		return errs
	}
	cancelled, end, err := d.gate.take(ctx, holds, lease)
	if err != nil {
		fill(errs, err)
		return errs
	}
	err = d.do(ctx, func() {
		until := d.prolonged(ls, at, cancelled, errs, leaseEnd(lease, end))
		for j, i := range at {
			ends[i] = until[j]
			if d.leased[ls[i].Token] == nil {
				lapsed = append(lapsed, holds[j])
			}
		}
	})
	if err != nil {
		return backend.FailAll(len(ls), err)
	}
	if len(lapsed) > 0 {
		d.gate.release(ctx, lapsed)
	}
	return errs
}

// heldMarks returns what the store knows of those leases that are in force.
func (d *desk) heldMarks(ls []backend.Lease, errs []error) (holds []Hold, at []int) {
	for i, l := range ls {
		if h := d.held(l); h != nil {
			holds, at = append(holds, h.hold()), append(at, i)
		} else {
			errs[i] = backend.ErrLeaseLost
		}
	}
	return holds, at
}

// prolonged carries the new ends over. A store that has lost its data may say that a message is cancelled which is held.
func (d *desk) prolonged(ls []backend.Lease, at []int, cancelled []bool, errs []error, until time.Time) []time.Time {
	ends := make([]time.Time, len(at))
	for j, i := range at {
		h := d.held(ls[i])
		if h == nil || cancelled[j] {
			errs[i] = backend.ErrLeaseLost
			continue
		}
		h.until, ends[j] = until, until
		d.endsAt(until)
	}
	return ends
}

// leaseEnd is when a lease ends that begins now, no later than the hold.
func leaseEnd(lease time.Duration, hold time.Time) time.Time {
	if until := ceil(time.Now().Add(lease)); until.Before(hold) {
		return until
	}
	return hold.Truncate(time.Millisecond)
}
