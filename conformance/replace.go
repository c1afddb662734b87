package conformance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/delayq/delayq/backend"
)

// Pushes that replace the message of their id.
var replaceChecks = []Check{
	{
		Name: "replace", Invariant: 4, needs: []backend.Feature{backend.Replacing},
		Rule: "A push with Replace takes the place of a message of its id that waits, scheduled, due, given back, redriven or with an ended lease: body, headers and due time are the new ones, attempts count from 1, and one message is left. Without such a message it is an ordinary push.",
		run:  replaceWaiting,
	},
	{
		Name: "replace-refused", Invariant: 4, needs: []backend.Feature{backend.Replacing},
		Rule: "A push with Replace of an id in flight returns ErrInFlight; of one that is dead, or done while UniqueFor keeps it, ErrDuplicate, whose text says so. The message, its lease and its worker's attempt stay.",
		run:  replaceRefused,
	},
	{
		Name: "replace-order", Invariant: 7, needs: []backend.Feature{backend.Replacing, backend.Ordering},
		Rule: "Among messages of one due time a replacement has the place of its own push. Of several of one id in a batch the last wins, and all succeed.",
		run:  replaceOrder,
	},
	{
		Name: "max-wait", Invariant: 1, needs: []backend.Feature{backend.Replacing},
		Rule: "With MaxWait the due time is never later than the first push plus MaxWait, rounded up to the resolution, however often the message is replaced, given back, moved or redriven; a push without MaxWait, and one that finds no message waiting, begins anew.",
		run:  maxWait,
	},
	{
		Name: "replace-race", Invariant: 6, needs: []backend.Feature{backend.Replacing, backend.Cancelling},
		Rule: "When pushes with Replace, Receive and Cancel race for a message, through one client or two, some order of the calls explains what they returned: one message is there, with a content that was pushed, and never an older one after a newer push returned nil.",
		run:  func(t *testRun) { t.replaceRounds(40, race{}) },
	},
}

// replacing makes a message that replaces the one of an id.
func (t *testRun) replacing(id string, delay time.Duration) backend.Message {
	m := t.after(delay)
	m.Replace, m.ID = true, id
	m.Headers = t.headers("replaces", id)
	return m
}

// replace pushes a replacement, which is then the message that is expected. A Receive that was
// abandoned may have claimed a message that is due, on a server that gives it back at once: the push
// is repeated.
func (t *testRun) replace(id string, delay time.Duration, when string) backend.Message {
	m := t.replacing(id, delay)
	t.expect(m)
	t.eventually(0, "replacing a message that "+when, func() bool {
		err := outcome(t.q.Schedule(t.ctx, []backend.Message{m}))
		if errors.Is(err, backend.ErrInFlight) && !t.inProcess() {
			return false
		}
		t.must(err, "replacing a message that %s", when)
		return true
	})
	return m
}

// takeFirst takes a message, which must be at attempt 1.
func (t *testRun) takeFirst(id, when string) backend.Delivery {
	d := t.takeID(id)
	if d.Attempt != 1 {
		t.fail("a message that replaced one that %s was handed out at attempt %d; want 1", when, d.Attempt)
	}
	return d
}

func replaceWaiting(t *testRun) {
	for when, begin := range map[string]func() string{
		"is not there":    t.newID,
		"is scheduled":    func() string { return t.pushAfter(1000 * time.Hour) },
		"is due":          func() string { return t.pushAfter(0) },
		"was given back":  func() string { id := t.pushAfter(0); t.nack(t.takeID(id), 1000*time.Hour); return id },
		"was released":    func() string { id := t.pushAfter(0); t.untouched(t.takeID(id)); return id },
		"was rescheduled": t.pushMoved,
		"was redriven":    t.pushRedriven,
		"waits after an ended lease": func() string {
			id := t.pushAfter(0)
			t.takeIDFor(id, t.Tick)
			t.pass(t.Tick + t.lag())
			return id
		},
	} {
		t.ack(t.takeFirst(t.replace(begin(), 0, when).ID, when))
		t.nothing("the message that " + when + " was replaced, and the new one is done")

		later := t.replace(begin(), t.Tick, when)
		if t.fake != nil {
			t.nothing("the message that " + when + " was replaced by one that is due later")
		}
		t.pass(t.Tick + t.lag())
		t.ack(t.takeFirst(later.ID, when))
	}
	t.nothing("all are done")
}

func (t *testRun) pushMoved() string {
	id := t.pushAfter(100 * t.Tick) // not due, so that no Receive that was abandoned may still claim it
	if t.has(backend.Rescheduling) {
		t.must(t.move(id, 1000*time.Hour), "rescheduling")
	}
	return id
}

func (t *testRun) pushRedriven() string {
	id := t.pushAfter(0)
	if t.has(backend.Redriving) {
		t.must(t.deadLetter(t.takeID(id), "of the check"), "Dead")
		t.expectAgain(id, t.now())
		t.must(outcome(t.q.Redrive(t.ctx, []string{id})), "Redrive")
	}
	return id
}

func replaceRefused(t *testRun) {
	refused := func(id, when string, want error) error {
		err := outcome(t.q.Schedule(t.ctx, []backend.Message{t.replacing(id, 0)}))
		t.want(err, want, "replacing a message that is %s", when)
		return err
	}
	held := t.takeID(t.pushAfter(0))
	_ = refused(held.ID, "in flight", backend.ErrInFlight)
	t.nothing("the message is in flight, and could not be replaced")
	t.nack(held, 0)
	held = t.takeID(held.ID)
	_ = refused(held.ID, "in flight again", backend.ErrInFlight)
	t.ack(held)

	if t.has(backend.Redriving) {
		id := t.pushAfter(0)
		t.must(t.deadLetter(t.takeID(id), "of the check"), "Dead")
		if err := refused(id, "dead", backend.ErrDuplicate); !strings.Contains(err.Error(), "dead") {
			t.fail("the error does not say that the message is dead: %v", err)
		}
		t.must(sameContent(backend.Delivery{ID: id, Body: t.theLetter().Body, Headers: t.theLetter().Headers}, t.pushed[id].Message), "ListDead")
		t.must(outcome(t.q.DeleteDead(t.ctx, []string{id})), "DeleteDead")
	}
	if t.has(backend.UniqueWindows) {
		m := t.afterUnique(1000*time.Hour, 2000*time.Hour)
		t.push(m)
		t.ack(t.takeID(t.replace(m.ID, 0, "waits, and whose id stays taken").ID))
		_ = refused(m.ID, "done", backend.ErrDuplicate)
	}
	t.nothing("all are done")
}

func replaceOrder(t *testRun) {
	due := t.now().Add(t.Tick)
	a, b := t.at(due), t.at(due)
	t.push(a, b)
	again := t.at(due)
	again.ID, again.Replace = a.ID, true
	c := t.at(due)
	first, last := t.at(due), t.at(due)
	first.ID, first.Replace, last.ID, last.Replace = b.ID, true, b.ID, true
	t.push(again, c, first, last)
	t.pass(t.Tick + t.lag())
	for _, id := range []string{a.ID, c.ID, b.ID} {
		t.ack(t.takeID(id))
	}
	t.nothing("all are done")
}

func maxWait(t *testRun) {
	id := t.newID()
	push := func(delay, wait time.Duration) {
		m := t.replacing(id, delay)
		m.MaxWait = wait
		t.expect(m)
		t.must(outcome(t.q.Schedule(t.ctx, []backend.Message{m})), "pushing with MaxWait %v", wait)
	}
	dueIs := func(first time.Time, want time.Duration) {
		t.expectAgain(id, first.Add(want-t.Skew))
		t.pass(first.Add(want).Sub(t.now()) + t.lag())
		d := t.takeID(id)
		if over := d.Due.Sub(first.Add(want)); t.fake != nil && (over < 0 || over > t.traits.Resolution) {
			t.fail("the message was due %v after the first push; want %v", d.Due.Sub(first), want)
		}
		t.ack(d)
	}
	const far = 1000 * time.Hour

	first := t.now()
	push(far, 3*t.Tick) // alone it is bounded too
	dueIs(first, 3*t.Tick)

	first = t.now()
	for range 3 {
		push(2*t.Tick, 3*t.Tick)
		t.pass(t.Tick / 2)
	}
	push(2*t.Tick, 3*t.Tick)
	if t.has(backend.ChangingHeaders) && t.fake != nil {
		t.keepsFirst(id, first)
	}
	dueIs(first, 3*t.Tick)

	push(far, 2*far)
	t.pass(t.Tick)
	push(far, 0) // begins anew
	t.pass(t.Tick)
	first = t.now()
	push(far, t.Tick)
	dueIs(first, t.Tick)

	push(far, 2*far)
	t.pass(t.Tick)
	first = t.now()
	anew, bounded := t.replacing(id, far), t.replacing(id, far)
	bounded.MaxWait = t.Tick
	t.expect(bounded)
	t.must(outcome(t.q.Schedule(t.ctx, []backend.Message{anew, bounded})), "pushing without MaxWait and with it in one batch")
	dueIs(first, t.Tick)

	for how, comeBack := range t.waysBack(id) {
		first = t.now()
		push(0, 3*t.Tick)
		t.pass(t.Tick / 2)
		comeBack()
		push(far, 3*t.Tick)
		t.isBounded(id, first.Add(3*t.Tick), how)
		dueIs(first, 3*t.Tick)
	}
	t.nothing("all are done")
}

// waysBack are ways in which a message that is due comes to wait again.
func (t *testRun) waysBack(id string) map[string]func() {
	return map[string]func(){
		"given back untouched": func() { t.untouched(t.takeID(id)) },
		"redriven": func() {
			d := t.takeID(id)
			if !t.has(backend.Redriving) {
				t.nack(d, 0)
				return
			}
			t.must(t.deadLetter(d, "of the check"), "Dead")
			t.redrive(id)
		},
	}
}

// isBounded fails where Get shows a message with a later due time, to the noise of the machine.
func (t *testRun) isBounded(id string, latest time.Time, how string) {
	if !t.has(backend.Getting) {
		return
	}
	infos, errs := t.q.Get(t.ctx, []string{id})
	t.must(outcome(errs), "Get")
	if over := infos[0].Due.Sub(latest); over > t.traits.Resolution+t.Skew+t.noise() {
		t.fail("with MaxWait a message that was %s is due %v too late", how, over)
	}
}

// keepsFirst moves a message through a hand-out and a nack, which leave it the time of the first push.
func (t *testRun) keepsFirst(id string, first time.Time) {
	t.must(t.move(id, 0), "rescheduling")
	t.expectAgain(id, t.now())
	d := t.takeID(id)
	if at := backend.FirstPush(d.Headers); at.Before(first) || at.Sub(first) > time.Microsecond {
		t.fail("the header %s is %q; want %v", backend.FirstPushHeader, d.Headers[backend.FirstPushHeader], first)
	}
	t.nack(d, t.Tick)
	m := t.replacing(id, 1000*time.Hour)
	m.MaxWait = 3 * t.Tick
	t.expect(m)
	t.must(outcome(t.q.Schedule(t.ctx, []backend.Message{m})), "replacing a message that was given back")
}

const contentText = "content %d"

// contentNumber reads the number of a content of replaceRounds, 0 for another body.
func contentNumber(body []byte) (n uint32) {
	_, _ = fmt.Sscanf(string(body), contentText, &n)
	return n
}

// replaceRounds has pushes, claims and cancels race for one message in each round.
func (t *testRun) replaceRounds(rounds int, r race) {
	const pushers, pushes = 3, 2
	t.record()
	queues := []backend.Queue{t.q, t.second()}
	through := func(i int) backend.Queue { return queues[i%2] }
	if r.lossy {
		through = func(int) backend.Queue { return queues[1] }
	}
	var contents atomic.Int64
	for range rounds {
		id := t.newID()
		t.expect(backend.Message{ID: id})
		ctx, stop := context.WithCancel(t.ctx)
		var pushing atomic.Int64
		pushing.Store(pushers)
		push := func(i int) error {
			defer func() {
				if pushing.Add(-1) == 0 {
					stop()
				}
			}()
			for range pushes {
				if r.inFlight {
					time.Sleep(rand.N(500 * time.Microsecond)) // so that a worker holds the message at some pushes
				}
				body := fmt.Sprintf(contentText, contents.Add(1))
				err := outcome(through(i).Schedule(t.ctx, []backend.Message{{ID: id, Body: []byte(body), Replace: true, AfterInFlight: r.inFlight}}))
				if err != nil && !r.refusal(err) {
					return fmt.Errorf("pushing with Replace: %w", err)
				}
			}
			return nil
		}
		take := func(i int) error {
			if r.lossy {
				i = 0
			}
			return t.takeAndReturn(ctx, queues[i], r)
		}
		cancel := func() error {
			err := outcome(t.q.Cancel(t.ctx, []string{id}))
			if err != nil && !errors.Is(err, backend.ErrInFlight) && !errors.Is(err, backend.ErrNotFound) {
				return fmt.Errorf("cancelling: %w", err)
			}
			return nil
		}
		t.all(append(spread(pushers, push), append(spread(2, take), cancel)...)...)
		t.endRound(id, r)
	}
	t.judged("replaced", "linearizable", "lost", "lease")
	t.nothing("all are done")
}

// takeAndReturn receives messages, and gives each back, or acknowledges some, until ctx ends.
func (t *testRun) takeAndReturn(ctx context.Context, q backend.Queue, r race) error {
	const most = 5 // so that the search for an order of the calls stays short
	for n := range most {
		ds, err := q.Receive(ctx, 1, t.lease())
		if errors.Is(err, context.Canceled) {
			return nil
		} else if err != nil {
			return fmt.Errorf("receiving: %w", err)
		}
		if r.inFlight && n%2 == 0 {
			if err := outcome(q.Ack(t.ctx, []backend.Lease{ds[0].Lease()})); err != nil {
				return fmt.Errorf("acknowledging: %w", err)
			}
			continue
		}
		back := backend.Return{Lease: ds[0].Lease(), Untouched: ds[0].Attempt%2 == 0}
		if err := outcome(q.Nack(t.ctx, []backend.Return{back})); err != nil {
			return fmt.Errorf("giving back: %w", err)
		}
	}
	return nil
}

// endRound takes the message that is left, if any, and no second one.
func (t *testRun) endRound(id string, r race) {
	if r.inFlight { // the history tells whether one may be left
		err := t.afterFlight(func() error { return outcome(t.q.Cancel(t.ctx, []string{id})) })
		if err != nil && !errors.Is(err, backend.ErrNotFound) {
			t.fail("cancelling what a round has left: %v", err)
		}
	}
	m := backend.Message{ID: id, Body: []byte(fmt.Sprintf(contentText, 1<<31)), Replace: true}
	err := t.afterFlight(func() error { return outcome(t.q.Schedule(t.ctx, []backend.Message{m})) })
	t.must(err, "replacing what a round has left")
	ds, err := t.q.Receive(t.ctx, 2, t.lease())
	t.must(err, "taking the message of a round")
	if len(ds) != 1 || ds[0].ID != id || string(ds[0].Body) != string(m.Body) {
		t.fail("a round ended with %d messages, the first %s with the body %s; want one, %s", len(ds), ds[0].ID, brief(ds[0].Body), brief(m.Body))
	}
	t.ack(ds...)
}

// afterFlight makes a call until it does not return ErrInFlight: a claim for a Receive that has ended
// may be on its way back.
func (t *testRun) afterFlight(call func() error) error {
	err := call()
	for until := time.Now().Add(t.Patience); errors.Is(err, backend.ErrInFlight) && time.Now().Before(until); err = call() {
		time.Sleep(time.Millisecond) // between two tries; the outcome ends them
	}
	return err
}
