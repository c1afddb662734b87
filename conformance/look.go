package conformance

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/delayq/delayq/backend"
)

// The state of the backend, as it can be read, compared with the reference.

// compare runs after each operation. A store that sweeps, or has its own clock, gets time for it.
func (m *machine) compare() {
	if !m.has(backend.CountingScheduled) {
		return
	}
	want := m.ref.stats()
	patient := m.fake == nil || m.traits.Sweep > 0
	for deadline := time.Now().Add(m.Patience); ; time.Sleep(time.Millisecond) {
		got, err := m.q.Stats(m.ctx)
		same := m.agree(got, want)
		switch {
		case err != nil:
			m.rt.Fatalf("Stats: %v", err)
		case same:
			return
		case !patient || time.Now().After(deadline):
			m.rt.Fatalf("the backend counts %s; the reference %s", statsText(got), statsText(want))
		}
	}
}

// agree compares two counts. What time passes by is compared where the reference knows the time.
func (m *machine) agree(got, want backend.Stats) bool {
	switch {
	case countsOf(got) != countsOf(want) || got.Paused != want.Paused || sum(got.Due[:]) != got.Scheduled:
		return false
	case !m.ref.exact:
		return true
	}
	return got.HeadDue.Equal(want.HeadDue) && got.PausedUntil.Equal(want.PausedUntil) && (got.Due == want.Due || got.DueEstimated) &&
		(want.OldestReady-got.OldestReady).Abs() <= m.traits.Resolution
}

// compareAll compares each message, at the end of a run.
func (m *machine) compareAll() {
	m.ref.step++
	if m.has(backend.Peeking) {
		m.peeks = nil
		for m.peekPage(max(7, m.scale/3)); m.peeks != nil; {
			m.peekPage(max(7, m.scale/3))
		}
	}
	if m.has(backend.Redriving) {
		m.lists = nil
		for m.listPage(max(5, m.scale/3)); m.lists != nil; {
			m.listPage(max(5, m.scale/3))
		}
	}
}

// A walk reads a list page by page, while operations go on between the pages.
type walk struct {
	begun  int // the number of the operation before the first page
	cursor string
	pages  int
	seen   map[string]int
}

func newWalk(step int) *walk { return &walk{begun: step - 1, seen: make(map[string]int)} }

// skipped returns a message that did not change between the pages and was not listed exactly once.
func (w *walk) skipped(ms []*refMessage) *refMessage {
	for _, m := range ms {
		if m.changed <= w.begun && w.seen[m.ID] != 1 {
			return m
		}
	}
	return nil
}

func (w *walk) endless(ms int) bool { return w.pages > 2*ms+1000 }

// getSome compares messages by id.
func (m *machine) getSome(dice *rand.Rand) {
	ids := m.ids(dice)
	shown, errs := m.q.Get(m.ctx, ids)
	if len(shown) != len(ids) {
		m.rt.Fatalf("Get of %d ids returns %d messages", len(ids), len(shown))
	}
	m.outcomes(errs, len(ids), "getting", func(i int) (string, error) {
		id, state := ids[i], m.ref.state(ids[i])
		if state == 0 {
			return id, backend.ErrNotFound
		}
		if got := shown[i]; at(errs, i) == nil {
			m.getIs(id, got, state)
		}
		return id, nil
	})
}

func (m *machine) getIs(id string, got backend.MessageInfo, state backend.State) {
	if got.ID != id || got.State != state || got.Err != nil {
		m.rt.Fatalf("Get shows message %q as %v, %v; want %q, %v", got.ID, got.State, got.Err, id, state)
	}
	if end := m.ref.windows[id]; m.ref.exact && end.After(m.ref.now) != !got.UniqueUntil.IsZero() || m.ref.exact && !got.UniqueUntil.IsZero() && !got.UniqueUntil.Equal(end) {
		m.rt.Fatalf("Get shows a window of %s until %v; want %v", id, got.UniqueUntil, end)
	}
	want := m.ref.ms[id]
	if want == nil {
		return
	}
	if got.Attempts != want.attempt {
		m.rt.Fatalf("Get shows %d attempts of message %s; it had %d", got.Attempts, id, want.attempt)
	}
	m.dueIs(id, got.Due, want)
	m.whole(id, got.Body, got.Headers, want)
	if state == backend.StateInFlight {
		m.ends("the lease that Get shows", id, got.LeaseUntil, want.until.Sub(m.ref.now))
	}
	if state == backend.StateDead {
		m.diedLike(got, want)
	}
}

// peekPage compares the next page of waiting messages.
func (m *machine) peekPage(limit int) {
	if m.peeks == nil {
		m.peeks = newWalk(m.ref.step)
	}
	w := m.peeks
	page, next, err := m.q.Peek(m.ctx, w.cursor, limit)
	if err != nil || len(page) > limit {
		m.rt.Fatalf("Peek after %q: a page of at most %d has %d messages, and %v", w.cursor, limit, len(page), err)
	}
	var before *refMessage
	for _, shown := range page {
		want := m.ref.ms[shown.ID]
		if want == nil || want.state != "scheduled" || shown.Err != nil {
			m.rt.Fatalf("Peek shows message %s, which does not wait: %v", shown.ID, shown.Err)
		}
		if ready := m.ref.ready(want); ready && shown.State != backend.StateReady || !ready && shown.State != backend.StateScheduled {
			m.rt.Fatalf("Peek shows message %s as %v; it is ready: %t", shown.ID, shown.State, ready)
		}
		if shown.Attempts != want.attempt {
			m.rt.Fatalf("Peek shows %d attempts of message %s; it had %d", shown.Attempts, shown.ID, want.attempt)
		}
		m.dueIs(shown.ID, shown.Due, want)
		m.whole(shown.ID, shown.Body, shown.Headers, want)
		if before != nil && m.inOrder(before) && after(before, want) {
			m.rt.Fatalf("Peek shows message %s before %s", before.ID, want.ID)
		}
		before = want
		w.seen[shown.ID]++
	}
	w.cursor, w.pages = next, w.pages+1
	if next == "" {
		m.peeks = nil
		m.peeked(w)
	} else if w.endless(len(m.ref.ms)) {
		m.rt.Fatalf("Peek has listed %d pages and goes on", w.pages)
	}
}

// inOrder reports whether this message must be shown before the next in the order. A store in which
// other clients move messages shows those first that they have moved.
func (m *machine) inOrder(shown *refMessage) bool {
	return m.fake != nil && m.has(backend.Ordering) && (m.has(backend.OwnIDs) || !m.ref.ready(shown))
}

func after(a, b *refMessage) bool { return a.due.After(b.due) || a.due.Equal(b.due) && a.seq > b.seq }

// peeked looks for messages that no page had. A message that is due may move between two pages: by a
// sweep, or to where other programs take it, whatever the operations are.
func (m *machine) peeked(w *walk) {
	ms := m.ref.in("scheduled")
	sweeps := m.traits.Sweep > 0 && (m.fake == nil || !m.has(backend.OwnIDs))
	if sweeps || w.begun < m.ref.step-1 {
		ms = slices.DeleteFunc(ms, m.ref.ready)
	}
	if skipped := w.skipped(ms); skipped != nil {
		m.rt.Fatalf("Peek lists message %s %d times in %d pages; it waited all the time", skipped.ID, w.seen[skipped.ID], w.pages)
	}
}

// listPage compares the next page of dead letters.
func (m *machine) listPage(limit int) {
	if m.lists == nil {
		m.lists = newWalk(m.ref.step)
	}
	w := m.lists
	page, next, err := m.q.ListDead(m.ctx, w.cursor, limit)
	if err != nil || len(page) > limit {
		m.rt.Fatalf("ListDead after %q: a page of at most %d has %d messages, and %v", w.cursor, limit, len(page), err)
	}
	last, died := 0, time.Time{}
	for _, l := range page {
		want := m.ref.ms[l.ID]
		switch {
		case want == nil || want.state != "dead" || l.State != backend.StateDead:
			m.rt.Fatalf("ListDead shows message %s, which is not dead, as %v", l.ID, l.State)
		case l.Died.Before(died) || m.has(backend.Ordering) && want.death < last:
			m.rt.Fatalf("dead letter %s is listed after one that died later", l.ID)
		}
		last, died = want.death, l.Died
		m.diedLike(l, want)
		m.dueIs(l.ID, l.Due, want)
		m.whole(l.ID, l.Body, l.Headers, want)
		w.seen[l.ID]++
	}
	w.cursor, w.pages = next, w.pages+1
	if next == "" {
		m.lists = nil
		if skipped := w.skipped(m.ref.in("dead")); skipped != nil {
			m.rt.Fatalf("ListDead lists message %s %d times in %d pages; it was dead all the time", skipped.ID, w.seen[skipped.ID], w.pages)
		}
	} else if w.endless(len(m.ref.ms)) {
		m.rt.Fatalf("ListDead has listed %d pages and goes on", w.pages)
	}
}

// diedLike compares a dead letter.
func (m *machine) diedLike(l backend.DeadLetter, want *refMessage) {
	switch {
	case l.Attempts != want.attempt || l.Reason != want.reason:
		m.rt.Fatalf("dead letter %s has %d attempts and the reason %q; want %d, %q", l.ID, l.Attempts, l.Reason, want.attempt, want.reason)
	case m.fake != nil && l.Died.Sub(want.died).Abs() > m.traits.Resolution:
		m.rt.Fatalf("dead letter %s died at %v; it was at %v", l.ID, l.Died, want.died)
	}
}
