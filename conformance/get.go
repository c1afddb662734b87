package conformance

import (
	"fmt"
	"strings"
	"time"

	"github.com/delayq/delayq/backend"
)

// Invariants 2 and 4, for Get.
var getChecks = []Check{
	{
		Name: "get", Invariant: 2, needs: []backend.Feature{backend.Getting},
		Rule: "Through its whole life Get shows a message whole and in its state, with due time, attempts, the end of its lease or its death, on any client; an id that is not there returns ErrNotFound and an empty entry.",
		run:  get,
	},
	{
		Name: "get-changes-nothing", Invariant: 2, needs: []backend.Feature{backend.Getting},
		Rule: "Get takes nothing: attempts, leases and the order stay as they are.",
		run:  getChangesNothing,
	},
	{
		Name: "get-many", Invariant: 2, needs: []backend.Feature{backend.Getting},
		Rule: "Get returns a message or an error for each id, in the order of the ids, however many and however large the messages are.",
		run:  getMany,
	},
	{
		Name: "get-done", Invariant: 4, needs: []backend.Feature{backend.Getting, backend.UniqueWindows},
		Rule: "While UniqueFor keeps the id of a message that is gone, Get shows it as done; it shows the end of the window with every message that has one.",
		run:  getDone,
	},
	{
		Name: "duplicate-says-state", Invariant: 4, needs: []backend.Feature{backend.Getting, backend.Deduplicating, backend.OwnIDs},
		Rule: "The text of ErrDuplicate says whether the first message is scheduled, in flight, dead or done.",
		run:  duplicateSaysState,
	},
}

// A looker gets messages through two clients.
type looker struct {
	*testRun
	qs [2]backend.Queue
}

func (t *testRun) looker() *looker { return &looker{t, [2]backend.Queue{t.q, t.second()}} }

// shows gets a message through both clients, and compares all but its times.
func (l *looker) shows(id string, state backend.State, attempts int) (m backend.MessageInfo) {
	for _, q := range l.qs {
		ms, errs := q.Get(l.ctx, []string{id})
		l.must(outcome(errs), "Get of message %s, which is %v", id, state)
		if len(ms) != 1 {
			l.fail("Get of one id returns %d messages", len(ms))
		}
		m = ms[0]
		switch {
		case m.ID != id || m.State != state:
			l.fail("Get shows message %q as %v; want %q, %v", m.ID, m.State, id, state)
		case m.Attempts != attempts && l.has(backend.CountingAttempts):
			l.fail("Get shows %d attempts of message %s, which is %v; want %d", m.Attempts, id, state, attempts)
		case m.LeaseUntil.IsZero() != (state != backend.StateInFlight):
			l.fail("Get shows the end of a lease %v for a message that is %v", m.LeaseUntil, state)
		case m.Died.IsZero() != (state != backend.StateDead) || state != backend.StateDead && m.Reason != "":
			l.fail("Get shows a death at %v for %q of a message that is %v", m.Died, m.Reason, state)
		case m.Err != nil:
			l.fail("Get of message %s: %v", id, m.Err)
		}
		l.isWhole(m)
	}
	return m
}

// isWhole compares the content of a message with the pushed one.
func (t *testRun) isWhole(m backend.MessageInfo) {
	t.mu.Lock()
	e := t.pushed[m.ID]
	t.mu.Unlock()
	t.must(sameContent(backend.Delivery{ID: m.ID, Body: m.Body, Headers: m.Headers}, e.Message), "Get")
}

// isGone expects ErrNotFound through both clients.
func (l *looker) isGone(id, because string) {
	for _, q := range l.qs {
		ms, errs := q.Get(l.ctx, []string{id})
		l.want(outcome(errs), backend.ErrNotFound, "Get of a message that is %s", because)
		l.emptyEntries("Get of a message that is "+because, ms, 1)
	}
}

// sameTime compares times of the store's clock, which a reply may have rounded.
func (t *testRun) sameTime(what string, got, want time.Time) {
	if got.Sub(want).Abs() > t.traits.Resolution {
		t.fail("%s is %v; want %v", what, got, want)
	}
}

func get(t *testRun) {
	l := t.looker()
	l.isGone("unknown", "unknown")
	later := t.at(t.now().Add(500 * t.Tick)) // long enough for a machine that stands still between two calls
	t.push(later)
	t.sameTime("the due time that Get shows", l.shows(later.ID, backend.StateScheduled, 0).Due, later.Due)

	id := t.pushAfter(0)
	l.shows(id, backend.StateReady, 0)
	d := t.takeID(id)
	m := l.shows(id, backend.StateInFlight, 1)
	t.sameTime("the end of the lease that Get shows", m.LeaseUntil, d.Until)
	t.sameTime("the due time that Get shows", m.Due, d.Due)
	end, err := t.extend(d, 2*t.lease())
	t.must(err, "Extend")
	t.sameTime("the end of the extended lease that Get shows", l.shows(id, backend.StateInFlight, 1).LeaseUntil, end)
	t.untouched(d)
	t.sameTime("the due time of a message given back untouched", l.shows(id, backend.StateReady, 0).Due, d.Due)

	lease := t.Tick + t.noise()
	t.takeFor(lease)
	t.pass(lease + t.traits.Resolution)
	l.shows(id, backend.StateReady, 1) // whether or not the store has noticed
	t.grace()
	asked := t.now()
	t.nack(t.takeID(id), 500*t.Tick)
	if m := l.shows(id, backend.StateScheduled, 2); m.Due.Before(asked.Add(500*t.Tick - t.Skew).Truncate(t.traits.Resolution)) {
		t.fail("Get shows the due time %v of a message given back for %v at %v", m.Due, 500*t.Tick, asked)
	}
	getDead(t, l)
	if t.has(backend.Cancelling) {
		t.must(t.cancelID(id), "cancelling")
		l.isGone(id, "cancelled")
	}
}

// getDead goes on with the deaths of messages, and what comes after.
func getDead(t *testRun, l *looker) {
	id := t.pushAfter(0)
	d := t.takeID(id)
	before := t.now()
	t.must(t.deadLetter(d, "of the check"), "Dead")
	m := l.shows(id, backend.StateDead, 1)
	t.sameTime("the due time of a dead letter that Get shows", m.Due, d.Due)
	if m.Reason != "of the check" || m.Died.Before(before.Add(-t.Skew-t.traits.Resolution)) || m.Died.After(t.now().Add(t.Skew+t.traits.Resolution)) {
		t.fail("Get shows a death at %v for %q; want %v, %q", m.Died, m.Reason, before, "of the check")
	}
	if t.has(backend.Redriving) {
		t.expectAgain(id, time.Time{})
		t.must(outcome(t.q.Redrive(t.ctx, []string{id})), "redriving")
		l.shows(id, backend.StateReady, 0)
		t.ack(t.takeID(id))
	} else {
		id = t.pushAfter(0)
		t.ack(t.takeID(id))
	}
	l.isGone(id, "done")
}

func getChangesNothing(t *testRun) {
	l := t.looker()
	held := t.takeID(t.pushAfter(0))
	ids := []string{held.ID}
	for range 4 {
		ids = append(ids, t.pushAfter(0))
	}
	ids = append(ids, t.pushAfter(500*t.Tick))
	look := func() {
		for range 3 {
			for i, id := range ids {
				switch i {
				case 0:
					t.sameTime("the end of a lease", l.shows(id, backend.StateInFlight, 1).LeaseUntil, held.Until)
				case len(ids) - 1:
					l.shows(id, backend.StateScheduled, 0)
				default:
					l.shows(id, backend.StateReady, 0)
				}
			}
		}
	}
	look()
	t.ack(held)
	for len(ids) > 2 {
		d := t.take()
		if d.Attempt != 1 {
			t.fail("message %s, which was only shown by Get, was handed out at attempt %d", d.ID, d.Attempt)
		}
		if next := ids[1]; d.ID != next && t.has(backend.Ordering) {
			t.fail("message %s was handed out; want %s", d.ID, next)
		}
		ids = ids[1:]
		if t.has(backend.Ordering) {
			held = d
			look()
		}
		t.ack(d)
	}
}

func getMany(t *testRun) {
	const small, large, size = 600, 12, 1 << 20
	var ids []string
	for i := range small + large {
		m := t.after(500 * t.Tick)
		if i < large { // more than a reply of a store may have
			m.Body = []byte(strings.Repeat("0123456789abcdef", size/16))
		}
		t.push(m)
		ids = append(ids, m.ID)
	}
	want := make([]string, 0, 2*len(ids))
	for i, id := range ids {
		switch want = append(want, id); {
		case i%3 == 0:
			want = append(want, fmt.Sprint("unknown ", i))
		case i%7 == 0:
			want = append(want, ids[0], id)
		}
	}
	ms, errs := t.q.Get(t.ctx, want)
	if len(ms) != len(want) || errs != nil && len(errs) != len(want) {
		t.fail("Get of %d ids returns %d messages and %d errors", len(want), len(ms), len(errs))
	}
	for i, id := range want {
		if strings.HasPrefix(id, "unknown") {
			t.want(at(errs, i), backend.ErrNotFound, "Get of an unknown id among others")
			t.emptyEntries("Get of an unknown id among others", ms[i:i+1], 1)
			continue
		}
		t.must(at(errs, i), "Get of message %s among others", id)
		if ms[i].ID != id {
			t.fail("Get returns message %q where %q was asked for", ms[i].ID, id)
		}
		t.isWhole(ms[i])
	}
}

func getDone(t *testRun) {
	l := t.looker()
	window := 4 * t.lease()
	pushed := t.now()
	m := t.afterUnique(0, window)
	t.push(m)
	keeps := func(shown backend.MessageInfo) {
		first, last := pushed.Add(window-t.Skew), t.now().Add(window+t.Skew)
		if end := shown.UniqueUntil; end.Before(first.Truncate(max(t.traits.Resolution, 1))) || end.After(last.Add(t.traits.Resolution)) {
			t.fail("Get shows a window that ends at %v; it was opened for %v at %v", end, window, pushed)
		}
	}
	keeps(l.shows(m.ID, backend.StateReady, 0))
	d := t.takeID(m.ID)
	keeps(l.shows(m.ID, backend.StateInFlight, 1))
	t.ack(d)
	for _, q := range l.qs {
		ms, errs := q.Get(t.ctx, []string{m.ID})
		t.must(outcome(errs), "Get of an id that UniqueFor keeps")
		if got := ms[0]; got.ID != m.ID || got.State != backend.StateDone || got.Body != nil || !got.Due.IsZero() || got.Attempts != 0 || got.Err != nil {
			t.fail("Get shows a message that is done, and whose id UniqueFor keeps, as %+v", got)
		}
		keeps(ms[0])
	}
	plain := t.pushAfter(0)
	if m := l.shows(plain, backend.StateReady, 0); !m.UniqueUntil.IsZero() {
		t.fail("Get shows a window until %v of a message without one", m.UniqueUntil)
	}
	if t.fake != nil {
		t.pass(pushed.Add(window).Sub(t.now()) + t.traits.Resolution)
		l.isGone(m.ID, "done, and its window has ended")
	}
}

func duplicateSaysState(t *testRun) {
	m := t.after(0)
	t.push(m)
	again := func(state backend.State) {
		t.must(saysState(outcome(t.q.Schedule(t.ctx, []backend.Message{{ID: m.ID}})), state), "pushing the id of a message that is %v", state)
	}
	again(backend.StateScheduled)
	errs := t.q.Schedule(t.ctx, []backend.Message{{ID: m.ID}, {ID: m.ID}})
	t.must(saysState(at(errs, 1), backend.StateScheduled), "pushing an id twice that a message has")
	d := t.takeID(m.ID)
	again(backend.StateInFlight)
	t.nack(d, 0)
	again(backend.StateScheduled)
	d = t.takeID(m.ID)
	again(backend.StateInFlight)
	t.must(t.deadLetter(d, "of the check"), "Dead")
	again(backend.StateDead)
	if t.has(backend.Redriving) {
		t.expectAgain(m.ID, time.Time{})
		t.must(outcome(t.q.Redrive(t.ctx, []string{m.ID})), "redriving")
		again(backend.StateScheduled)
		t.ack(t.takeID(m.ID))
	}
	if t.has(backend.UniqueWindows) {
		m = t.afterUnique(0, t.lease())
		t.push(m)
		again(backend.StateScheduled)
		t.ack(t.takeID(m.ID))
		again(backend.StateDone)
	}
}

// saysState returns what is wrong with the error of a push whose id a message in that state has.
func saysState(err error, state backend.State) error {
	wanted := backend.Duplicate(state)
	_, says, _ := strings.Cut(wanted.Error(), backend.ErrDuplicate.Error())
	if err == nil || !strings.HasSuffix(err.Error(), says) {
		return fmt.Errorf("the error is %w; want %w", err, wanted)
	}
	return nil
}
