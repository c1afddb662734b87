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
		Rule: "A message whose handler always fails is dead after exactly MaxAttempts, with the last error as reason; OnDead is called once, when the dead letter is listed.",
		run:  poison,
	},
	{
		Name: "poison-kills-worker", Invariant: 9, needs: []backend.Feature{backend.CountingAttempts, backend.Redriving},
		Rule: "A message that crashes its worker each time is dead after exactly MaxAttempts: no further handler gets it, and OnDead is called once.",
		run:  poisonKillsWorker,
	},
	{
		Name: "dead-is-out", Invariant: 9,
		Rule: "A dead message is not handed out, also after its lease would have ended.",
		run:  deadIsOut,
	},
	{
		Name: "dead-list", Invariant: 9, needs: []backend.Feature{backend.Redriving},
		Rule: "Dead letters are listed whole, with reason and attempts, and without a lease or a window, by time of death, page by page; their ids are listed in the same order.",
		run:  deadList,
	},
	{
		Name: "redrive", Invariant: 9, needs: []backend.Feature{backend.Redriving},
		Rule: "A redriven message is due at once, whole, at attempt 1, and is no longer a dead letter. In the order it has the place of a message that is pushed then.",
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
		Name: "dead-filter", Invariant: 9, needs: []backend.Feature{backend.Redriving},
		Rule: "RedriveWhere and DeleteWhere act on each dead letter that they select by age, reason or header, and on no other, and return their number.",
		run:  deadFilter,
	},
	{
		Name: "dead-retention", Invariant: 9, needs: []backend.Feature{backend.Redriving},
		Rule: "TrimDead deletes the dead letters beyond a count or an age, the oldest first and no others, and returns their number; their ids are free.",
		run:  deadRetention,
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
	reason := t.consumeUntilDead(func(context.Context, *delayq.Delivery) error {
		return fmt.Errorf("%w at call %d", errPoison, handled.Add(1))
	}, delayq.MaxAttempts(maxAttempts), delayq.Retry(t.backoff()))
	t.handledTimes(handled.Load(), maxAttempts)
	l, want := t.theLetter(), fmt.Sprintf("%v at call %d", errPoison, maxAttempts)
	if l.ID != m.ID || l.Reason != want || l.Attempts != maxAttempts {
		t.fail("the dead letter is %s with %d attempts for %q; want %s, %d, %q", l.ID, l.Attempts, l.Reason, m.ID, maxAttempts, want)
	}
	if reason != want {
		t.fail("OnDead got the reason %q; want %q", reason, want)
	}
}

// consumeUntilDead runs a Consume until OnDead has been called for a message, which has to be a dead
// letter then. It returns the reason.
func (t *testRun) consumeUntilDead(h delayq.Handler, opts ...delayq.ConsumeOption) (reason string) {
	var calls atomic.Int64
	q := t.portable()
	listed := errors.New("the consumer has not stopped")
	t.consume(h, func() bool { return calls.Load() > 0 }, append(opts, delayq.OnDead(
		func(ctx context.Context, d *delayq.Delivery, why string, _ error) {
			reason = why
			_, listed = letterOf(ctx, q, d.ID)
			calls.Add(1)
		}))...)
	t.must(listed, "listing the dead letter in OnDead")
	if n := calls.Load(); n != 1 {
		t.fail("OnDead was called %d times; want 1", n)
	}
	return reason
}

// letterOf returns the dead letter of that id.
func letterOf(ctx context.Context, q delayq.Queue, id string) (delayq.DeadLetter, error) {
	for l, err := range q.Dead().All(ctx) {
		if err != nil || l.ID == id {
			return l, err
		}
	}
	return delayq.DeadLetter{}, fmt.Errorf("message %s is not among the dead letters", id)
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
	t.consumeUntilDead(func(context.Context, *delayq.Delivery) error {
		handled.Add(1)
		return nil
	}, delayq.MaxAttempts(maxAttempts))
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
		m.Body, m.Headers, m.UniqueFor = []byte("dead \x00\xff"+m.ID), t.headers("h", "\x00"+m.ID), t.window()
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
	return errors.Join(sameContent(backend.Delivery{ID: l.ID, Body: l.Body, Headers: l.Headers}, m), onlyItsFields(l))
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
	t.redrive(m.ID)
	d := s.woken(m.ID, "a message was redriven")
	if d.Attempt != 1 {
		t.fail("the redriven message was handed out at attempt %d; want 1", d.Attempt)
	}
	if len(t.letters()) != 0 {
		t.fail("the redriven message is still listed as dead")
	}
	t.ack(d)
	t.want(outcome(t.q.Redrive(t.ctx, []string{m.ID})), backend.ErrNotFound, "Redrive of a message that is done")
	if t.has(backend.Ordering) && t.fake != nil {
		t.redrivesInOrder()
	}
}

// redrivesInOrder redrives messages in another order than that of their pushes and deaths, between
// two pushes for the same due time.
func (t *testRun) redrivesInOrder() {
	var ids []string
	for range 4 {
		id := t.pushAfter(0)
		t.must(t.deadLetter(t.takeID(id), "of the check"), "Dead")
		ids = append(ids, id)
	}
	t.pass(t.Tick)
	slices.Reverse(ids)
	first, last := t.at(t.now()), t.at(t.now())
	t.push(first)
	t.redrive(ids...)
	t.push(last)
	t.grace()
	t.inOrder(slices.Concat([]string{first.ID}, ids, []string{last.ID}), 2)
}

// redrive redrives messages, which may be handed out again.
func (t *testRun) redrive(ids ...string) {
	for _, id := range ids {
		t.expectAgain(id, time.Time{})
	}
	t.must(errors.Join(t.q.Redrive(t.ctx, ids)...), "Redrive")
	t.grace()
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

// trimAll calls TrimDead until nothing is left to delete, and returns how many letters it deleted.
func trimAll(ctx context.Context, q backend.Queue, keep backend.Retention) (removed int, err error) {
	for more := true; more && err == nil; {
		var n int
		n, more, err = q.TrimDead(ctx, keep)
		removed += n
	}
	return removed, err
}

// letters are the dead letters that there should be, the oldest first.
type letters struct {
	*testRun
	ids  []string
	died map[string]time.Time // as listed
}

// die makes n more.
func (l *letters) die(n int) {
	ms := make([]backend.Message, n)
	for i := range ms {
		ms[i] = l.at(l.now().Add(-100 * time.Hour)) // the age is from the death on
	}
	for some := range slices.Chunk(ms, delayq.MaxBatch) {
		l.push(some...)
	}
	for i, d := range l.takeAllFor(n, delayq.MaxBatch, backend.MaxLease) {
		l.kill(d, fmt.Sprint("letter ", i))
	}
}

func (l *letters) kill(d backend.Delivery, reason string) {
	l.must(l.deadLetter(d, reason), "Dead")
	l.ids = append(l.ids, d.ID)
}

// trim trims them, and wants so many of the oldest to go.
func (l *letters) trim(keep backend.Retention, want int) {
	removed, err := trimAll(l.ctx, l.q, keep)
	if err != nil || removed != want {
		l.fail("TrimDead of %+v deletes %d letters and returns %v; want %d", keep, removed, err, want)
	}
	left := pages(l.testRun, "ListDead", 100, l.q.ListDead)
	if l.has(backend.Ordering) {
		l.ids = l.ids[want:]
	} else {
		l.anyOfSameTime(left)
	}
	if !slices.Equal(each(left, func(d backend.DeadLetter) string { return d.ID }), l.ids) {
		l.fail("after TrimDead of %+v there are %d letters, not the %d youngest", keep, len(left), len(l.ids))
	}
	for _, d := range left {
		l.died[d.ID] = d.Died
	}
}

// anyOfSameTime takes over the letters that are left, where they are the youngest. Any of those of the
// same time may be.
func (l *letters) anyOfSameTime(left []backend.DeadLetter) {
	are := make(map[string]bool)
	for i, d := range left {
		are[d.ID] = true
		if !slices.Contains(l.ids, d.ID) || i > 0 && d.Died.Before(left[i-1].Died) {
			l.fail("letter %s, which died at %v, is listed in place %d", d.ID, d.Died, i)
		}
	}
	for _, id := range l.ids {
		if died, known := l.died[id]; !are[id] && known && len(left) > 0 && died.After(left[0].Died) {
			l.fail("letter %s, which died at %v, was trimmed before %s, which died at %v", id, died, left[0].ID, left[0].Died)
		}
	}
	l.ids = each(left, func(d backend.DeadLetter) string { return d.ID })
}

// deadRetention trims dead letters of two ages, more of them than one step deletes.
func deadRetention(t *testRun) {
	n := t.scaled(260, 2300)
	waits := t.pushAfter(1000 * t.Tick)
	l := &letters{testRun: t, died: make(map[string]time.Time)}
	l.die(n)
	l.trim(backend.Retention{}, 0)
	l.trim(backend.Retention{MaxCount: n, MaxAge: 1000 * t.Tick}, 0)
	l.trim(backend.Retention{MaxCount: n - 1}, 1)
	l.trim(backend.Retention{MaxCount: 9}, n-10)
	oldest := l.ids[0]
	t.pass(2 * t.Tick)
	l.die(3)
	if t.fake != nil { // else the others may be as old
		l.trim(backend.Retention{MaxAge: 2*t.Tick + max(t.traits.Resolution, time.Millisecond)}, 0)
		l.trim(backend.Retention{MaxCount: 11, MaxAge: 2 * t.Tick}, 9)
	}
	l.trim(backend.Retention{MaxCount: 2, MaxAge: 1000 * time.Hour}, len(l.ids)-2)
	t.pass(t.Tick)
	l.trim(backend.Retention{MaxCount: 2, MaxAge: t.Tick / 2}, 2)
	l.reuse(oldest)
	l.windows()
	if t.has(backend.Cancelling) {
		t.must(t.cancelID(waits), "cancelling the message that waits")
	}
}

// reuse pushes the id of a trimmed letter again, which dies once more.
func (l *letters) reuse(id string) {
	if !l.has(backend.OwnIDs) || !l.has(backend.Deduplicating) {
		return
	}
	m := l.after(0)
	m.ID = id
	l.push(m)
	l.kill(l.takeID(id), "again")
	l.trim(backend.Retention{MaxAge: 1000 * time.Hour}, 0)
	l.trim(backend.Retention{MaxAge: 0, MaxCount: 1}, 0)
	l.must(outcome(l.q.DeleteDead(l.ctx, []string{id})), "DeleteDead")
	l.ids = nil
}

// windows trims a letter whose id UniqueFor keeps.
func (l *letters) windows() {
	if !l.has(backend.UniqueWindows) {
		return
	}
	m := l.after(0)
	m.UniqueFor = time.Hour
	l.push(m)
	l.kill(l.takeID(m.ID), "of the check")
	l.pass(l.Tick)
	l.trim(backend.Retention{MaxAge: l.Tick / 2}, 1)
	l.want(outcome(l.q.Schedule(l.ctx, []backend.Message{m})), backend.ErrDuplicate, "a push of an id that UniqueFor keeps")
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
	var before time.Time
	for cursor := ""; pages == 0 || cursor != ""; pages++ {
		page, next, err := t.q.ListDead(t.ctx, cursor, 7)
		t.must(err, "ListDead")
		for _, l := range page {
			t.must(sameLetter(l, ms[l.ID]), "listing")
			t.diedAt(l, ms[l.ID].Due, died[l.ID])
			place := slices.Index(ids, l.ID)
			if place < last && (t.has(backend.Ordering) || l.Died.Before(before)) { // else those of one time come in any order
				t.fail("dead letter %s is listed after %s, which died later", l.ID, ids[last])
			}
			last, before = place, l.Died
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

// deadFilter makes letters of which the filters select some that are not neighbours.
func deadFilter(t *testRun) {
	const n = 9
	ms := make([]backend.Message, n)
	for i := range ms {
		ms[i] = t.after(0)
		ms[i].Headers = t.headers("kind", fmt.Sprint(i%2))
		t.push(ms[i])
		t.must(t.deadLetter(t.takeID(ms[i].ID), fmt.Sprintf("reason %d of %d", i%3, i)), "Dead")
		t.pass(max(t.traits.Resolution, time.Millisecond)) // so that deaths have an order
	}
	dead := t.portable().Dead()
	t.picks(dead.RedriveWhere, delayq.DeadFilter{ReasonPrefix: "reason 1"}, 3)
	for _, i := range []int{1, 4, 7} {
		t.expectAgain(ms[i].ID, time.Time{})
	}
	t.grace()
	for _, d := range t.takeAll(3, 3) {
		if i := slices.IndexFunc(ms, func(m backend.Message) bool { return m.ID == d.ID }); i%3 != 1 {
			t.fail("message %d of %d was redriven, and was not selected", i, n)
		}
		t.ack(d)
	}
	left := []int{0, 2, 3, 5, 6, 8}
	if t.has(backend.KeepingHeaders) {
		t.picks(dead.DeleteWhere, delayq.DeadFilter{Headers: map[string]string{"kind": "1"}}, 2)
		left = []int{0, 2, 6, 8}
	}
	half := len(left) / 2
	died := t.letters()[half].Died
	t.picks(dead.DeleteWhere, delayq.DeadFilter{DiedBefore: died}, half)
	got := each(t.letters(), func(l backend.DeadLetter) string { return l.ID })
	if want := each(left[half:], func(i int) string { return ms[i].ID }); !slices.Equal(got, want) {
		t.fail("left are the dead letters %q; want %q", got, want)
	}
	t.nothing("the other letters are dead or deleted")
}

func (t *testRun) picks(where func(context.Context, delayq.DeadFilter) (int, error), f delayq.DeadFilter, want int) {
	n, err := where(t.ctx, f)
	t.must(err, "dead letters by %+v", f)
	if n != want {
		t.fail("%d dead letters were selected by %+v; want %d", n, f, want)
	}
}
