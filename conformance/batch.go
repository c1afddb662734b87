package conformance

import (
	"slices"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

// Batches of all sizes, on every method.
var batchChecks = []Check{
	{
		Name: "batches", Invariant: 2,
		Rule: "A batch of any size has, on every method, the effect of its messages one by one: each is stored, in order where the backend claims order, and has its own outcome.",
		run:  batches,
	},
	{
		Name: "batch-twice", Invariant: 5,
		Rule: "A message that is in a batch twice is settled, cancelled, redriven or deleted once; its second item gets the error for a message that is done.",
		run:  batchTwice,
	},
	{
		Name: "batch-of-ended-leases", Invariant: 7,
		Rule: "Messages whose leases have ended, however many, are handed out again in their old order, singly or in batches, whichever lease ended first.",
		run:  batchOfEndedLeases,
	},
	{
		Name: "stats-after-many-leases", Invariant: 2, needs: []backend.Feature{backend.CountingScheduled},
		Rule: "However many leases have ended, the next Stats counts their messages as ready, and Peek lists them in their old order.",
		run:  statsAfterManyLeases,
	},
}

// batchSizes returns sizes up to the largest that is reasonable: where calls are round trips, one
// beyond a thousand.
func (t *testRun) batchSizes() []int {
	switch {
	case t.inProcess():
		return []int{18, 70, 300, 1100, delayq.MaxBatch}
	case !t.has(backend.Ordering):
		return []int{300}
	}
	return []int{1100}
}

func batches(t *testRun) {
	for _, n := range t.batchSizes() {
		ids := t.pushBatch(n)
		t.peeksDue(ids)
		ds := t.takeBatch(ids)
		t.extendBatch(ds)
		ds = t.giveBackBatch(ds, ids)
		if t.has(backend.Redriving) {
			ds = t.deadLetterBatch(ds, ids)
		}
		t.ackBatch(ds)
		if t.has(backend.CancelNotFound) {
			t.cancelBatch(n)
		}
		t.nothing("all are done")
	}
	if t.has(backend.CountingScheduled) && t.has(backend.Redriving) {
		t.empty()
	}
}

// pushBatch schedules messages whose due times have passed, several of each due time, not sorted.
// It returns the ids in the order of delivery. In the middle is a message whose id is taken, where
// the store rejects those.
func (t *testRun) pushBatch(n int) []string {
	const times = 7
	now := t.now().Truncate(time.Second)
	byDue := make([][]string, times)
	var batch []backend.Message
	refused := -1
	for i := range n {
		k := i * 5 % times
		m := t.at(now.Add(time.Duration(k-times) * time.Second))
		batch = append(batch, m)
		byDue[k] = append(byDue[k], m.ID)
	}
	t.expect(batch...)
	if t.has(backend.Deduplicating) {
		again := batch[0]
		again.Body = []byte("another body")
		refused = n / 2
		batch = slices.Insert(batch, refused, again)
	}
	errs := t.q.Schedule(t.ctx, batch)
	t.outcomes(errs, len(batch), "scheduling", func(i int) error {
		if i == refused {
			return backend.ErrDuplicate
		}
		return nil
	})
	return slices.Concat(byDue...)
}

// outcomes compares the errors of a batch with those that are wanted.
func (t *testRun) outcomes(errs []error, n int, doing string, want func(i int) error) {
	if errs != nil && len(errs) != n {
		t.fail("%s a batch of %d returned %d errors", doing, n, len(errs))
	}
	for i := range n {
		t.want(at(errs, i), want(i), "%s number %d of %d", doing, i+1, n)
	}
}

func idOf(d backend.Delivery) string { return d.ID }

func leaseOf(d backend.Delivery) backend.Lease { return d.Lease() }

func allWell(int) error { return nil }

func (t *testRun) sameOrder(by string, want, got []string) {
	if !t.has(backend.Ordering) {
		want, got = slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got))
	}
	if len(want) != len(got) {
		t.fail("%s has %d messages; there are %d", by, len(got), len(want))
	}
	for i := range want {
		if want[i] != got[i] {
			t.fail("%s has message %s at place %d of %d; want %s", by, got[i], i+1, len(want), want[i])
		}
	}
}

// takeBatch receives messages in batches, which must have this order.
func (t *testRun) takeBatch(ids []string) []backend.Delivery {
	ds := t.takeAll(len(ids), len(ids))
	t.sameOrder("Receive", ids, each(ds, idOf))
	return ds
}

// peeksDue lists due messages, which a store may move from one place to another between two pages.
func (t *testRun) peeksDue(ids []string) {
	if t.has(backend.Peeking) {
		t.sameOrder("Peek", ids, each(t.peekAll(len(ids)), func(p backend.Pending) string { return p.ID }))
	}
}

// forged is a lease that was never given, of a message in flight.
func forged(d backend.Delivery) backend.Lease {
	l := d.Lease()
	l.Token.Lo += 1 << 40
	return l
}

// withForged puts a lease that was never given into the middle of those of deliveries.
func withForged(ds []backend.Delivery) (ls []backend.Lease, want func(i int) error) {
	ls = each(ds, leaseOf)
	middle := len(ls) / 2
	ls = slices.Insert(ls, middle, forged(ds[0]))
	return ls, func(i int) error {
		if i == middle {
			return backend.ErrLeaseLost
		}
		return nil
	}
}

func (t *testRun) extendBatch(ds []backend.Delivery) {
	ls, want := withForged(ds)
	lease := t.lease() + t.Tick
	asked := t.now()
	ends, errs := t.q.Extend(t.ctx, ls, lease)
	t.outcomes(errs, len(ls), "extending", want)
	if len(ends) != len(ls) {
		t.fail("extending a batch of %d returned %d ends", len(ls), len(ends))
	}
	for i, end := range ends {
		switch {
		case want(i) == nil:
			t.ends(end, asked, lease)
		case !end.IsZero():
			t.fail("the lease that was never given ends at %v", end)
		}
	}
}

// giveBackBatch gives all back, first untouched and then without a delay, and receives them again.
func (t *testRun) giveBackBatch(ds []backend.Delivery, ids []string) []backend.Delivery {
	before := make(map[string]int)
	for _, untouched := range []bool{true, false} {
		ls, want := withForged(ds)
		rs := each(ls, func(l backend.Lease) backend.Return { return backend.Return{Lease: l, Untouched: untouched} })
		for _, d := range ds {
			before[d.ID] = d.Attempt
			t.expectAgain(d.ID, time.Time{})
		}
		t.outcomes(t.q.Nack(t.ctx, rs), len(rs), "giving back", want)
		t.grace()
		ds = t.takeAll(len(ids), len(ids))
		if !untouched {
			ids = slices.Sorted(slices.Values(ids)) // they have one due time now, and are ordered by push
		}
		if untouched || t.fake != nil {
			t.sameOrder("Receive", ids, each(ds, idOf))
		}
	}
	if t.has(backend.ExactAttempts) && t.has(backend.CountingAttempts) {
		for _, d := range ds {
			if d.Attempt != before[d.ID]+1 {
				t.fail("message %s came at attempt %d; want %d", d.ID, d.Attempt, before[d.ID]+1)
			}
		}
	}
	return ds
}

// deadLetterBatch dead-letters all, lists them, redrives them and receives them again.
func (t *testRun) deadLetterBatch(ds []backend.Delivery, ids []string) []backend.Delivery {
	ls, want := withForged(ds)
	bs := each(ls, func(l backend.Lease) backend.DeadLetterRequest {
		return backend.DeadLetterRequest{Lease: l, Reason: "reason of " + l.ID}
	})
	t.outcomes(t.q.Dead(t.ctx, bs), len(bs), "dead-lettering", want)
	died := each(ds, idOf)
	for _, limit := range []int{len(ids), t.scaled(100, 13)} {
		letters := t.listPages(limit)
		t.sameOrder("ListDead", died, each(letters, func(l backend.DeadLetter) string { return l.ID }))
		for _, l := range letters {
			t.must(sameLetter(l, t.pushed[l.ID].Message), "listing")
		}
	}
	back := slices.Insert(slices.Clone(died), len(died)/2, "unknown")
	for _, id := range died {
		t.expectAgain(id, time.Time{})
	}
	t.outcomes(t.q.Redrive(t.ctx, back), len(back), "redriving", func(i int) error {
		if i == len(died)/2 {
			return backend.ErrNotFound
		}
		return nil
	})
	t.grace()
	if t.fake != nil || t.inProcess() {
		return t.takeBatch(died)
	}
	return t.takeAll(len(ids), len(ids))
}

func (t *testRun) ackBatch(ds []backend.Delivery) {
	ls, want := withForged(ds)
	for _, d := range ds {
		t.expectNoMore(d.ID, "acknowledged")
	}
	t.outcomes(t.q.Ack(t.ctx, ls), len(ls), "acknowledging", want)
}

// cancelBatch pushes, moves and cancels messages.
func (t *testRun) cancelBatch(n int) {
	ms := make([]backend.Message, n)
	for i := range ms {
		ms[i] = t.after(100 * t.Tick)
	}
	t.push(ms...)
	ids := each(ms, func(m backend.Message) string { return m.ID })
	with := slices.Insert(slices.Clone(ids), n/2, "unknown")
	want := func(i int) error {
		if i == n/2 {
			return backend.ErrNotFound
		}
		return nil
	}
	if t.has(backend.Rescheduling) {
		moves := each(with, func(id string) backend.Move { return backend.Move{ID: id, Delay: 200 * t.Tick} })
		t.outcomes(t.q.Reschedule(t.ctx, moves), len(moves), "rescheduling", want)
		if t.has(backend.CountingScheduled) {
			t.isDue(timed{ids[0], "rescheduled in a batch", t.now().Add(200 * t.Tick)}, t.stats().HeadDue.Add(t.noise()))
		}
	}
	t.outcomes(t.q.Cancel(t.ctx, with), len(with), "cancelling", want)
	for _, id := range ids {
		t.expectNoMore(id, "cancelled")
	}
}

func batchTwice(t *testRun) {
	first := func(want error) func(int) error {
		return func(i int) error {
			if i == 0 {
				return nil
			}
			return want
		}
	}
	take := func() backend.Lease { return leaseOf(t.takeID(t.pushAfter(0))) }
	l := take()
	t.expectNoMore(l.ID, "acknowledged")
	t.outcomes(t.q.Ack(t.ctx, []backend.Lease{l, l}), 2, "acknowledging one message twice,", first(backend.ErrLeaseLost))

	l = take()
	_, errs := t.q.Extend(t.ctx, []backend.Lease{l, l}, t.lease())
	t.outcomes(errs, 2, "extending one lease twice,", allWell)
	t.expectAgain(l.ID, time.Time{})
	r := backend.Return{Lease: l}
	t.outcomes(t.q.Nack(t.ctx, []backend.Return{r, r}), 2, "giving one message back twice,", first(backend.ErrLeaseLost))
	d := t.takeID(l.ID)

	b := backend.DeadLetterRequest{Lease: d.Lease(), Reason: "of the check"}
	t.outcomes(t.q.Dead(t.ctx, []backend.DeadLetterRequest{b, b}), 2, "dead-lettering one message twice,", first(backend.ErrLeaseLost))
	t.expectNoMore(d.ID, "dead-lettered")
	if t.has(backend.Redriving) {
		t.expectAgain(d.ID, time.Time{})
		t.outcomes(t.q.Redrive(t.ctx, []string{d.ID, d.ID}), 2, "redriving one message twice,", first(backend.ErrNotFound))
		t.grace()
		t.must(t.deadLetter(t.takeID(d.ID), "of the check"), "Dead")
		t.outcomes(t.q.DeleteDead(t.ctx, []string{d.ID, d.ID}), 2, "deleting one dead letter twice,", first(backend.ErrNotFound))
	}
	if t.has(backend.Rescheduling) {
		t.moveTwice()
	}
	if t.has(backend.Cancelling) {
		id := t.pushAfter(t.Tick)
		t.outcomes(t.q.Cancel(t.ctx, []string{id, id}), 2, "cancelling one message twice,", first(backend.ErrNotFound))
		t.expectNoMore(id, "cancelled")
	}
	t.nothing("all are done")
}

// moveTwice reschedules a message twice in a batch; the second time counts.
func (t *testRun) moveTwice() {
	id := t.pushAfter(100 * t.Tick)
	t.expectAgain(id, time.Time{})
	moves := []backend.Move{{ID: id, Delay: 200 * t.Tick}, {ID: id}}
	t.outcomes(t.q.Reschedule(t.ctx, moves), 2, "rescheduling one message twice,", allWell)
	t.grace()
	t.ack(t.takeID(id))
}

// batchOfEndedLeases ends the leases of the first messages in the order last. It receives some
// messages one at a time again, and the rest in batches.
func batchOfEndedLeases(t *testRun) {
	n := slices.Max(t.batchSizes())
	lease := t.Tick + 2*t.noise()
	ids := t.pushBatch(n)
	t.leaseMany(n/3, 2*lease)
	t.leaseMany(n-n/3, lease)
	t.pass(2*lease + t.lag())
	t.comesAgain(ids, 20)
}

// comesAgain receives and settles the messages, the first ones one at a time.
func (t *testRun) comesAgain(ids []string, singly int) {
	n := len(ids)
	var got []string
	for len(got) < n {
		limit := max(1, n/3)
		if len(got) < singly {
			limit = 1
		}
		ds, err := t.receive(t.q, limit, t.lease())
		t.must(err, "taking message %d of %d again", len(got)+1, n)
		got = append(got, each(ds, idOf)...)
		t.ackBatch(ds)
	}
	t.sameOrder("Receive", ids, got)
}

// leaseMany receives n messages and settles none.
func (t *testRun) leaseMany(n int, lease time.Duration) {
	for n > 0 {
		ds, err := t.receive(t.q, n, lease)
		t.must(err, "taking %d messages", n)
		n -= len(ds)
	}
}

// statsAfterManyLeases calls Stats before a Receive makes the store notice that leases ended.
func statsAfterManyLeases(t *testRun) {
	n := slices.Max(t.batchSizes())
	lease := t.Tick + 2*t.noise()
	ids := t.pushBatch(n)
	t.leaseMany(n, lease)
	t.pass(lease + t.lag())
	if s := t.stats(); s.Ready != int64(n) || s.Scheduled+s.InFlight+s.Dead != 0 {
		t.fail("after %d leases have ended Stats returns %s", n, countsOf(s))
	}
	t.peeksDue(ids)
	t.comesAgain(ids, 0)
}
