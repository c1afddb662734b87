package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

// Invariant 9: poison messages become dead letters, and can be redriven.
var deadChecks = []Check{
	{
		Name: "poison", Invariant: 9, needs: []backend.Feature{backend.CountingAttempts, backend.Redriving},
		Rule: "A message whose handler always fails is dead after exactly MaxAttempts, with the last error as reason.",
		run:  poison,
	},
	{
		Name: "poison-kills-worker", Invariant: 9, needs: []backend.Feature{backend.CountingAttempts, backend.Redriving},
		Rule: "A message that crashes its worker each time is dead after exactly MaxAttempts: no further handler gets it.",
		run:  poisonKillsWorker,
	},
	{
		Name: "dead-is-out", Invariant: 9,
		Rule: "A dead message is not handed out, also after its lease would have ended.",
		run:  deadIsOut,
	},
	{
		Name: "dead-list", Invariant: 9, needs: []backend.Feature{backend.Redriving},
		Rule: "Dead letters are listed whole, with reason and attempts, by time of death, page by page; their ids are listed in the same order.",
		run:  deadList,
	},
	{
		Name: "redrive", Invariant: 9, needs: []backend.Feature{backend.Redriving},
		Rule: "A redriven message is due at once, whole, at attempt 1, and is no longer a dead letter.",
		run:  redrive,
	},
	{
		Name: "delete-dead", Invariant: 9, needs: []backend.Feature{backend.Redriving},
		Rule: "A deleted dead letter is gone; redriving or deleting a message that is not dead returns ErrNotFound and changes nothing.",
		run:  deleteDead,
	},
	{
		Name: "dead-pages", Invariant: 9, needs: []backend.Feature{backend.Redriving},
		Rule: "Pages of dead letters list each once, by time of death and not by due time, with both times, though letters are redriven, deleted and added between the pages.",
		run:  deadPages,
	},
	{
		Name: "redrive-all", Invariant: 9, needs: []backend.Feature{backend.Redriving},
		Rule: "RedriveAll brings back every dead letter, however many there are.",
		run:  redriveAll,
	},
}

var errPoison = errors.New("poison of the check")

func poison(t *testRun) {
	const maxAttempts = 3
	m := t.after(0)
	t.push(m)
	var handled atomic.Int64
	t.consume(func(context.Context, *delayq.Delivery) error {
		handled.Add(1)
		return errPoison
	}, t.hasDied, delayq.MaxAttempts(maxAttempts), delayq.Retry(t.backoff()))
	t.handledTimes(handled.Load(), maxAttempts)
	l := t.theLetter()
	if l.ID != m.ID || l.Reason != errPoison.Error() || l.Attempts != maxAttempts {
		t.fail("the dead letter is %s with %d attempts for %q; want %s, %d, %q", l.ID, l.Attempts, l.Reason, m.ID, maxAttempts, errPoison)
	}
}

// backoff waits a tick, without a random part.
func (t *testRun) backoff() delayq.Backoff {
	return delayq.Backoff{Base: t.Tick, Max: t.Tick, Factor: 1}
}

// consume runs a Consume until a condition holds, while time passes, and stops it.
func (t *testRun) consume(h delayq.Handler, until func() bool, opts ...delayq.ConsumeOption) {
	q := t.portable(delayq.WithLease(t.longLease()))
	ctx, stop := context.WithCancel(t.ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- q.Consume(ctx, h, opts...) }()
	t.eventually(t.step(), "the end of the check's work", until)
	stop()
	t.stopped(ended)
}

// stopped waits for a Consume whose context has ended.
func (t *testRun) stopped(ended <-chan error) {
	select {
	case err := <-ended:
		t.must(err, "Consume")
	case <-time.After(t.Patience):
		t.fail("Consume went on for %v after its context ended", t.Patience)
	}
}

// longLease outlasts the time that passes while a check polls.
func (t *testRun) longLease() time.Duration {
	if t.fake != nil {
		return backend.MaxLease
	}
	return t.lease()
}

// step is the time that passes between two polls.
func (t *testRun) step() time.Duration {
	if t.fake != nil {
		return t.Tick / 4
	}
	return 0
}

func (t *testRun) hasDied() bool { return len(t.letters()) > 0 }

func (t *testRun) letters() []backend.DeadLetter {
	ls, _, err := t.q.ListDead(t.ctx, "", 100)
	t.must(err, "ListDead")
	return ls
}

func (t *testRun) theLetter() backend.DeadLetter {
	ls := t.letters()
	if len(ls) != 1 {
		t.fail("there are %d dead letters; want 1", len(ls))
	}
	return ls[0]
}

func (t *testRun) handledTimes(got, want int64) {
	if got != want {
		t.fail("the handler ran %d times; want %d", got, want)
	}
}

func poisonKillsWorker(t *testRun) {
	const maxAttempts = 3
	id := t.pushAfter(0)
	for range maxAttempts {
		t.takeIDFor(id, t.Tick) // and dies
		t.outlast(t.Tick)
	}
	var handled atomic.Int64
	t.consume(func(context.Context, *delayq.Delivery) error {
		handled.Add(1)
		return nil
	}, t.hasDied, delayq.MaxAttempts(maxAttempts))
	t.handledTimes(handled.Load(), 0)
	t.theLetter()
}

func deadIsOut(t *testRun) {
	id := t.pushAfter(0)
	lease := t.Tick + t.noise()
	t.must(t.deadLetter(t.takeIDFor(id, lease), "of the check"), "Dead")
	t.nothing("it is dead")
	t.pass(lease + t.lag())
	t.nothing("it is dead")
}

func deadList(t *testRun) {
	const n = 7
	ms := make(map[string]backend.Message)
	var ids []string
	for range n {
		m := t.after(0)
		m.Body, m.Headers = []byte("dead \x00\xff"+m.ID), t.headers("h", "\x00"+m.ID)
		t.push(m)
		t.must(t.deadLetter(t.takeID(m.ID), "reason of "+m.ID), "Dead")
		ms[m.ID], ids = m, append(ids, m.ID)
		t.pass(max(t.traits.Resolution, time.Millisecond)) // so that deaths have an order
	}
	listed := t.listPages(3)
	if len(listed) != n {
		t.fail("%d of %d dead letters were listed", len(listed), n)
	}
	for i, l := range listed {
		if l.ID != ids[i] {
			t.fail("dead letter %d is %s; by time of death it is %s", i, l.ID, ids[i])
		}
		t.must(sameLetter(l, ms[l.ID]), "listing")
	}
}

func sameLetter(l backend.DeadLetter, m backend.Message) error {
	if l.Reason != "reason of "+l.ID {
		return fmt.Errorf("dead letter %s has the reason %q", l.ID, l.Reason)
	}
	if l.Died.IsZero() {
		return fmt.Errorf("dead letter %s has no time of death", l.ID)
	}
	return sameContent(backend.Delivery{ID: l.ID, Body: l.Body, Headers: l.Headers}, m)
}

// listPages lists all dead letters, a few at a time. It fails unless ListDeadIDs lists the same.
func (t *testRun) listPages(limit int) []backend.DeadLetter {
	all := pages(t, "ListDead", limit, t.q.ListDead)
	ids := pages(t, "ListDeadIDs", limit, t.q.ListDeadIDs)
	if want := each(all, func(l backend.DeadLetter) string { return l.ID }); !slices.Equal(ids, want) {
		t.fail("ListDeadIDs lists %q; ListDead lists %q", ids, want)
	}
	return all
}

func redrive(t *testRun) {
	m := t.after(0)
	m.Body, m.Headers = []byte("\x00redriven\xff"), t.headers("h", "\x00v")
	t.push(m)
	t.nack(t.takeID(m.ID), 0)
	t.must(t.deadLetter(t.takeID(m.ID), "of the check"), "Dead")
	s := t.sleep(t.q)
	t.expectAgain(m.ID, t.now())
	t.must(outcome(t.q.Redrive(t.ctx, []string{m.ID})), "Redrive")
	t.grace()
	d := s.woken(m.ID, "a message was redriven")
	if d.Attempt != 1 {
		t.fail("the redriven message was handed out at attempt %d; want 1", d.Attempt)
	}
	if len(t.letters()) != 0 {
		t.fail("the redriven message is still listed as dead")
	}
	t.ack(d)
	t.want(outcome(t.q.Redrive(t.ctx, []string{m.ID})), backend.ErrNotFound, "Redrive of a message that is done")
}

func deleteDead(t *testRun) {
	gone, live := t.pushAfter(0), t.pushAfter(t.Tick)
	t.must(t.deadLetter(t.takeID(gone), "of the check"), "Dead")
	for _, id := range []string{live, "unknown"} {
		t.want(outcome(t.q.Redrive(t.ctx, []string{id})), backend.ErrNotFound, "Redrive of %s", id)
		t.want(outcome(t.q.DeleteDead(t.ctx, []string{id})), backend.ErrNotFound, "DeleteDead of %s", id)
	}
	t.must(outcome(t.q.DeleteDead(t.ctx, []string{gone})), "DeleteDead")
	t.want(outcome(t.q.DeleteDead(t.ctx, []string{gone})), backend.ErrNotFound, "DeleteDead a second time")
	t.want(outcome(t.q.Redrive(t.ctx, []string{gone})), backend.ErrNotFound, "Redrive of a deleted dead letter")
	if len(t.letters()) != 0 {
		t.fail("the deleted dead letter is still listed")
	}
	t.pass(t.Tick)
	t.grace()
	t.ack(t.takeID(live))
	t.nothing("the other was deleted")
}

// deadPages dead-letters messages in the opposite order of their due times.
func deadPages(t *testRun) {
	n := t.scaled(24, 250)
	now := t.now().Truncate(time.Second)
	ms, died := make(map[string]backend.Message), make(map[string][2]time.Time)
	var ids []string
	die := func(i int) {
		m := t.at(now.Add(-time.Duration(i) * time.Second))
		t.push(m)
		d := t.takeID(m.ID)
		from := t.now()
		t.must(t.deadLetter(d, "reason of "+m.ID), "Dead")
		ms[m.ID], died[m.ID], ids = m, [2]time.Time{from, t.now()}, append(ids, m.ID)
		if t.fake != nil {
			t.pass(time.Second)
		}
	}
	for i := range n {
		die(i)
	}
	gone, seen := make(map[string]bool), make(map[string]int)
	last, pages := -1, 0
	for cursor := ""; pages == 0 || cursor != ""; pages++ {
		page, next, err := t.q.ListDead(t.ctx, cursor, 7)
		t.must(err, "ListDead")
		for _, l := range page {
			t.must(sameLetter(l, ms[l.ID]), "listing")
			t.diedAt(l, ms[l.ID].Due, died[l.ID])
			place := slices.Index(ids, l.ID)
			if place < last {
				t.fail("dead letter %s is listed after %s, which died later", l.ID, ids[last])
			}
			last = place
			seen[l.ID]++
		}
		if cursor = next; pages > 2*n {
			t.fail("ListDead goes on after %d pages of %d letters", pages, n)
		}
		if pages < 5 {
			t.comeAndGo(page, ids[n-1-pages], gone)
			die(n + pages)
		}
	}
	for i, id := range ids {
		if seen[id] > 1 || seen[id] == 0 && !gone[id] && i < n {
			t.fail("dead letter %s was listed %d times; want 1", id, seen[id])
		}
	}
}

// comeAndGo redrives and deletes dead letters that were listed, and one that was not.
func (t *testRun) comeAndGo(page []backend.DeadLetter, further string, gone map[string]bool) {
	for i, l := range page {
		switch {
		case i == 0:
			t.expectAgain(l.ID, time.Time{})
			t.must(outcome(t.q.Redrive(t.ctx, []string{l.ID})), "Redrive")
			t.grace()
			t.ack(t.takeID(l.ID))
		case i < 5:
			t.must(outcome(t.q.DeleteDead(t.ctx, []string{l.ID})), "DeleteDead")
		}
		gone[l.ID] = true
	}
	if !gone[further] {
		t.must(outcome(t.q.DeleteDead(t.ctx, []string{further})), "DeleteDead")
		gone[further] = true
	}
}

// diedAt compares the times of a dead letter.
func (t *testRun) diedAt(l backend.DeadLetter, due time.Time, died [2]time.Time) {
	off := t.traits.Resolution + t.Skew
	if t.fake == nil {
		off += time.Millisecond // a clock may be read in that grain
	}
	if l.Died.Before(died[0].Add(-off)) || l.Died.After(died[1].Add(off)) {
		t.fail("dead letter %s died at %v; it was between %v and %v", l.ID, l.Died, died[0], died[1])
	}
	if l.Due.Before(due) || l.Due.Sub(due) > max(0, t.traits.Resolution-1) {
		t.fail("dead letter %s was due at %v; it was at %v", l.ID, l.Due, due)
	}
}

func redriveAll(t *testRun) {
	n := t.scaled(510, 600) // more than the library lists at a time
	ms := make([]backend.Message, n)
	for i := range ms {
		ms[i] = t.after(0)
	}
	t.push(ms...)
	ds := t.takeAll(n, n)
	t.must(errors.Join(t.q.Dead(t.ctx, each(ds, func(d backend.Delivery) backend.DeadLetterRequest {
		return backend.DeadLetterRequest{Lease: d.Lease(), Reason: "of the check"}
	}))...), "Dead")
	got, err := t.portable().Dead().RedriveAll(t.ctx)
	t.must(err, "RedriveAll")
	if got != n {
		t.fail("RedriveAll returns %d; there were %d dead letters", got, n)
	}
	for _, d := range ds {
		t.expectAgain(d.ID, time.Time{})
	}
	t.grace()
	t.ack(t.takeAll(n, n)...)
	if left := len(t.letters()); left > 0 {
		t.fail("%d dead letters are left", left)
	}
}
