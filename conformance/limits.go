package conformance

import (
	"cmp"
	"slices"
	"time"

	"github.com/delayq/delayq/backend"
)

// The limits of the contract, on every method that takes a value with a limit.
var limitChecks = []Check{
	{
		Name: "limits-of-delays", Invariant: 1,
		Rule: "Each delay up to the longest is kept to the resolution in a push, a nack and a reschedule: the message is shown with that due time, and not handed out before.",
		run:  limitsOfDelays,
	},
	{
		Name: "limits-of-due-times", Invariant: 1,
		Rule: "Each due time that the limits allow, the past included, is kept, rounded up, in a push and a reschedule, and shown wherever the message is shown.",
		run:  limitsOfDueTimes,
	},
	{
		Name: "limits-of-leases", Invariant: 5,
		Rule: "Each lease from the shortest to the longest lasts as long as Receive or Extend was asked for: the message can be settled just before the end, and not at the end.",
		run:  limitsOfLeases,
	},
	{
		Name: "limits-of-windows", Invariant: 4, needs: []backend.Feature{backend.UniqueWindows},
		Rule: "Each window from the shortest to the longest lasts until its end; then the id is free.",
		run:  limitsOfWindows,
	},
}

const (
	day  = 24 * time.Hour
	year = 365 * day
)

// near returns each duration with its two neighbours, a grain of the store away, from least to
// longest.
func (t *testRun) near(least, longest time.Duration, ds ...time.Duration) (all []time.Duration) {
	grain := max(t.traits.Resolution, 1)
	for _, d := range append(ds, least, longest) {
		for _, neighbour := range []time.Duration{d - grain, d, d + grain} {
			if neighbour >= least && neighbour <= longest {
				all = append(all, neighbour)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (t *testRun) delays() []time.Duration {
	longest := cmp.Or(t.traits.MaxDelay, backend.MaxDelay)
	return t.near(0, longest, time.Millisecond, time.Second, time.Minute, time.Hour, day, 7*day, 30*day, year, 400*day, 10*year)
}

// A timed message has a due time that the check knows: to the resolution on the fake clock, else to
// the machine's noise.
type timed struct {
	id, how string
	due     time.Time
}

func limitsOfDelays(t *testRun) {
	if t.fake == nil && !t.has(backend.Peeking) {
		return // the delays are too long to wait for, and the due times cannot be read
	}
	var all []timed
	for _, d := range t.delays() {
		all = append(all, t.pushedBy(d), t.nackedBy(d))
		if t.has(backend.Rescheduling) {
			all = append(all, t.movedBy(d))
		}
	}
	t.showsDue(all)
	t.comesWhenDue(all)
}

func (t *testRun) pushedBy(d time.Duration) timed {
	due := t.now().Add(d)
	return timed{t.pushAfter(d), "pushed with a delay of " + d.String(), due}
}

// nackedBy gives a message back.
func (t *testRun) nackedBy(d time.Duration) timed {
	id := t.push1st()
	held := t.takeAmong(id)
	due := t.now().Add(d)
	t.nack(held, d)
	return timed{id, "given back with a delay of " + d.String(), due}
}

// push1st pushes a message that is handed out before all others.
func (t *testRun) push1st() string {
	m := t.at(backend.EarliestDue)
	t.push(m)
	return m.ID
}

// takeAmong receives a message that is due, which comes first where the store has an order.
func (t *testRun) takeAmong(id string) backend.Delivery {
	if t.has(backend.Ordering) {
		return t.takeID(id)
	}
	var others []backend.Delivery
	defer func() {
		for _, d := range others {
			t.untouched(d)
		}
	}()
	for {
		d := t.take()
		if d.ID == id {
			return d
		}
		others = append(others, d)
	}
}

func (t *testRun) movedBy(d time.Duration) timed {
	id := t.pushAfter(100 * t.Tick)
	due := t.now().Add(d)
	t.expectAgain(id, due)
	t.must(t.move(id, d), "rescheduling by %v", d)
	return timed{id, "rescheduled by " + d.String(), due}
}

// showsDue checks the due times of waiting messages.
func (t *testRun) showsDue(all []timed) {
	if !t.has(backend.Peeking) {
		return
	}
	shown := make(map[string]time.Time)
	for _, p := range t.peekAll(100) {
		shown[p.ID] = p.Due
	}
	for _, m := range all {
		t.isDue(m, shown[m.id])
	}
}

func (t *testRun) isDue(m timed, got time.Time) {
	early, late := time.Duration(0), t.traits.Resolution
	if t.fake == nil {
		early, late = t.Skew+t.traits.Resolution, late+t.Skew+t.Slack
	}
	if got.Before(m.due.Add(-early)) || got.After(m.due.Add(late)) {
		t.fail("message %s, %s, is due at %v; want %v", m.id, m.how, got, m.due)
	}
}

// comesWhenDue lets time pass until just before each due time, and until the due time.
func (t *testRun) comesWhenDue(all []timed) {
	if t.fake == nil {
		return
	}
	slices.SortFunc(all, func(a, b timed) int { return a.due.Compare(b.due) })
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].due.Equal(all[0].due) {
			n++
		}
		if early := all[0].due.Add(-1); early.After(t.now()) {
			t.pass(early.Sub(t.now()))
			t.idle(all[0].how)
		}
		t.pass(max(0, all[0].due.Sub(t.now())))
		t.grace()
		for n < len(all) && !t.has(backend.Ordering) && !all[n].due.After(t.now()) {
			n++ // they may come first
		}
		due := make(map[string]timed)
		for _, m := range all[:n] {
			due[m.id] = m
		}
		for range n {
			d := t.take()
			m, ok := due[d.ID]
			if !ok {
				t.fail("message %s was handed out before %s, which was %s", d.ID, all[0].id, all[0].how)
			}
			t.isDue(m, d.Due)
			t.ack(d)
		}
		all = all[n:]
	}
}

// idle fails when a message is due. On a server it reads Stats instead of waiting in a Receive.
func (t *testRun) idle(because string) {
	if t.inProcess() || !t.has(backend.CountingScheduled) {
		t.nothing(because)
		return
	}
	if s := t.stats(); s.Ready != 0 {
		t.fail("Stats returns %s; nothing is due: %s", countsOf(s), because)
	}
}

func limitsOfDueTimes(t *testRun) {
	now := t.now().Truncate(max(t.traits.Resolution, time.Millisecond))
	for _, due := range []time.Time{
		now.Add(-t.Tick), now.Add(-1), now.Add(-time.Hour - 1), now.Add(-day), now.Add(-year), now.Add(-10 * year),
		backend.EarliestDue.Add(1), backend.EarliestDue,
	} {
		t.keepsDue(t.dueBy(due, false))
		if t.has(backend.Rescheduling) {
			t.keepsDue(t.dueBy(due, true))
		}
	}
	for _, due := range []time.Time{now.Add(time.Hour + 1), now.Add(10 * year), backend.LatestDue.Add(-1), backend.LatestDue} {
		for _, move := range []bool{false, true} {
			if longest := t.traits.MaxDelay; longest > 0 && due.Sub(now) >= longest || move && !t.has(backend.Rescheduling) || !t.has(backend.Cancelling) {
				continue
			}
			m := t.dueBy(due, move)
			t.showsExactly(m)
			t.must(t.cancelID(m.id), "cancelling")
		}
	}
	t.nothing("all are done")
}

// dueBy pushes a message that is due at a time, or reschedules one to it.
func (t *testRun) dueBy(due time.Time, move bool) timed {
	if !move {
		m := t.at(due)
		t.push(m)
		return timed{m.ID, "pushed for " + due.String(), due}
	}
	id := t.pushAfter(100 * t.Tick)
	t.expectAgain(id, due.Add(-t.Skew))
	t.must(outcome(t.q.Reschedule(t.ctx, []backend.Move{{ID: id, Due: due}})), "rescheduling to %v", due)
	return timed{id, "rescheduled to " + due.String(), due}
}

// showsExactly checks the due time of the only message in the queue.
func (t *testRun) showsExactly(m timed) {
	if t.has(backend.Peeking) {
		for _, p := range t.peekAll(10) {
			t.dueExactly(m, p.Due, "Peek")
		}
	}
	if t.has(backend.CountingScheduled) {
		t.dueExactly(m, t.stats().HeadDue, "Stats")
	}
}

func (t *testRun) dueExactly(m timed, got time.Time, by string) {
	if got.Before(m.due) || got.Sub(m.due) > max(0, t.traits.Resolution-1) {
		t.fail("message %s, %s, is shown by %s with the due time %v", m.id, m.how, by, got)
	}
}

// keepsDue checks the due time of a message that is due, in each state.
func (t *testRun) keepsDue(m timed) {
	t.showsExactly(m)
	d := t.takeID(m.id)
	t.dueExactly(m, d.Due, "Receive")
	t.untouched(d)
	t.showsExactly(m)
	d = t.takeID(m.id)
	t.dueExactly(m, d.Due, "the second Receive")
	if !t.has(backend.Redriving) {
		t.ack(d)
		return
	}
	t.must(t.deadLetter(d, "of the check"), "Dead")
	t.dueExactly(m, t.theLetter().Due, "ListDead")
	t.must(outcome(t.q.DeleteDead(t.ctx, []string{m.id})), "DeleteDead")
}

// A held message is in flight until a time.
type held struct {
	backend.Delivery
	end    time.Time
	settle bool // before the end
}

func limitsOfLeases(t *testRun) {
	var all []held
	for _, lease := range t.near(backend.MinLease, backend.MaxLease, time.Second, time.Minute, time.Hour, 2*time.Hour, 12*time.Hour) {
		for _, settle := range []bool{false, true} {
			t.push1st()
			asked := t.now()
			d := t.takeFor(t.atLeast(lease))
			t.ends(d.Until, asked, t.atLeast(lease))
			all = append(all, held{d, asked.Add(lease), settle})
			t.push1st()
			d = t.takeFor(t.lease())
			asked = t.now()
			end, err := t.extend(d, t.atLeast(lease))
			t.must(err, "extending to %v", lease)
			t.ends(end, asked, t.atLeast(lease))
			all = append(all, held{d, asked.Add(lease), settle})
		}
	}
	if t.fake == nil {
		for _, h := range all {
			t.ack(h.Delivery)
		}
		return
	}
	t.lastUntilTheirEnds(all)
}

// atLeast keeps the leases of a check in real time from ending under it.
func (t *testRun) atLeast(lease time.Duration) time.Duration {
	if t.fake != nil {
		return lease
	}
	return max(lease, 10*time.Minute)
}

func (t *testRun) lastUntilTheirEnds(all []held) {
	slices.SortStableFunc(all, func(a, b held) int { return a.end.Compare(b.end) })
	var lost []held
	for len(all) > 0 {
		end := all[0].end
		if early := end.Add(-1); early.After(t.now()) {
			t.pass(early.Sub(t.now()))
			if t.lag() == 0 { // else what has ended comes in between
				t.nothing("all leases last")
			}
		}
		var rest []held
		ended := !t.now().Before(end)
		for _, h := range all {
			switch {
			case h.end.After(end):
				rest = append(rest, h)
			case h.settle && !ended:
				t.ack(h.Delivery)
			default:
				lost = append(lost, h)
			}
		}
		all = rest
		t.pass(max(0, end.Add(t.traits.Resolution).Sub(t.now())))
		for _, h := range lost {
			t.want(outcome(t.q.Ack(t.ctx, []backend.Lease{h.Lease()})), backend.ErrLeaseLost, "Ack at the end of the lease")
		}
		if t.lag() == 0 {
			t.ack(t.takeAll(len(lost), 5)...)
			lost = nil
		}
	}
	t.grace()
	t.ack(t.takeAll(len(lost), 5)...)
	t.nothing("all are done")
}

func limitsOfWindows(t *testRun) {
	type window struct {
		id  string
		end time.Time
	}
	var all []window
	for _, d := range t.near(backend.MinUnique, backend.MaxUnique, time.Second, time.Hour, day, 7*day, 30*day, 90*day, year) {
		m := t.afterUnique(0, t.atLeast(d))
		end := t.now().Add(d)
		t.push(m)
		t.ack(t.takeID(m.ID))
		all = append(all, window{m.ID, end})
	}
	if t.fake == nil {
		for _, w := range all {
			t.isTaken(t.q, w.id, "its window lasts")
		}
		return
	}
	for _, w := range all { // from the shortest on
		if early := w.end.Add(-1); early.After(t.now()) {
			t.pass(early.Sub(t.now()))
			t.isTaken(t.q, w.id, "its window is about to end")
		}
		t.pass(max(0, w.end.Sub(t.now())) + t.traits.Resolution)
		t.push(backend.Message{ID: w.id, Body: []byte("after the window")})
		t.ack(t.takeID(w.id))
	}
	if t.inProcess() { // a server may keep the record of a window for longer than the window
		t.empty()
	}
}
