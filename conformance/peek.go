package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/delayq/delayq/backend"
)

// Invariant 2, for Peek.
var peekChecks = []Check{
	{
		Name: "peek", Invariant: 2, needs: []backend.Feature{backend.Peeking},
		Rule: "Peek lists waiting messages only, whole, with due times and attempts, and with nothing of a lease, a death or a window, page by page, and changes nothing; the list is sorted by due time where the backend claims order.",
		run:  peek,
	},
	{
		Name: "peek-pages", Invariant: 2, needs: []backend.Feature{backend.Peeking, backend.Cancelling},
		Rule: "When messages leave the queue between two pages, Peek skips no other message that is not due yet, and lists none twice.",
		run:  peekPages,
	},
	{
		Name: "peek-ties", Invariant: 2, needs: []backend.Feature{backend.Peeking, backend.Cancelling},
		Rule: "Of messages with the same due time in the future, the pages of Peek list each once, whatever is pushed or cancelled between the pages.",
		run:  peekTies,
	},
}

func peek(t *testRun) {
	held := t.takeID(t.pushAfter(0))
	t.must(t.deadLetter(t.takeID(t.pushAfter(0)), "of the check"), "Dead")
	m := t.afterUnique(0, t.window())
	t.push(m)
	retried := m.ID
	t.nack(t.takeID(retried), 500*t.Tick) // long enough for a machine that stands still between two calls
	third, second := t.pushAfter(300*t.Tick), t.pushAfter(100*t.Tick)
	first := t.pushAfter(0)
	for range 2 { // a Peek that changed something would show in the next
		t.lists(map[string]int{retried: 1}, first, second, third, retried)
	}
	if d := t.takeID(first); d.Attempt != 1 {
		t.fail("message %s, which was only shown by Peek, was handed out at attempt %d", first, d.Attempt)
	}
	t.lists(map[string]int{retried: 1}, second, third, retried)
	t.ack(held)
}

// lists compares the waiting messages with those that were pushed. Attempts that are not given are
// 0.
func (t *testRun) lists(attempts map[string]int, want ...string) {
	all := t.peekAll(2)
	ids := make([]string, len(all))
	for i, p := range all {
		ids[i] = p.ID
		t.must(t.looksLike(p), "Peek of message %s", p.ID)
		if p.Attempts != attempts[p.ID] && t.has(backend.CountingAttempts) {
			t.fail("message %s shows %d attempts; want %d", p.ID, p.Attempts, attempts[p.ID])
		}
	}
	if !t.has(backend.Ordering) {
		slices.Sort(ids)
		slices.Sort(want)
	}
	if !slices.Equal(ids, want) {
		t.fail("the waiting messages are %q; Peek shows %q", want, ids)
	}
}

// looksLike compares a waiting message, as shown, with the one that was pushed.
func (t *testRun) looksLike(p backend.Pending) error {
	t.mu.Lock()
	e := t.pushed[p.ID]
	t.mu.Unlock()
	switch {
	case p.Err != nil:
		return p.Err
	case e == nil:
		return errors.New("it was never pushed")
	case p.Due.Before(e.notBefore.Add(-t.Skew).Truncate(t.traits.Resolution)) || t.fake != nil && p.Due.Sub(e.notBefore) > t.traits.Resolution:
		return fmt.Errorf("it shows the due time %v; want %v", p.Due, e.notBefore)
	}
	return errors.Join(sameContent(backend.Delivery{ID: p.ID, Body: p.Body, Headers: p.Headers}, e.Message), onlyItsFields(p))
}

// onlyItsFields returns an error where a list shows fields that do not apply to a message's state,
// or a window, which Get alone shows.
func onlyItsFields(m backend.MessageInfo) error {
	died := m.State != backend.StateDead && (m.Reason != "" || !m.Died.IsZero())
	if died || !m.LeaseUntil.IsZero() || !m.UniqueUntil.IsZero() {
		return fmt.Errorf("message %s, which is %v, shows a lease until %v, a death at %v for %q, and a window until %v",
			m.ID, m.State, m.LeaseUntil, m.Died, m.Reason, m.UniqueUntil)
	}
	return nil
}

// peekAll reads all pages.
func (t *testRun) peekAll(limit int) []backend.Pending { return pages(t, "Peek", limit, t.q.Peek) }

func (t *testRun) peekPage(cursor string, limit int) (page []backend.Pending, next string) {
	return onePage(t, "Peek", cursor, limit, t.q.Peek)
}

// pages reads all pages of a list.
func pages[T any](t *testRun, what string, limit int, read func(context.Context, string, int) ([]T, string, error)) (all []T) {
	for cursor := ""; ; {
		page, next := onePage(t, what, cursor, limit, read)
		if all = append(all, page...); next == "" || len(all) > 100_000 {
			return all
		}
		cursor = next
	}
}

func onePage[T any](t *testRun, what, cursor string, limit int, read func(context.Context, string, int) ([]T, string, error)) ([]T, string) {
	page, next, err := read(t.ctx, cursor, limit)
	t.must(err, "%s after %q", what, cursor)
	if len(page) > limit {
		t.fail("%s has %d entries in a page of at most %d", what, len(page), limit)
	}
	return page, next
}

func peekPages(t *testRun) {
	const n, limit = 9, 3
	var ids []string
	for i := range n {
		ids = append(ids, t.pushAfter(50*t.Tick+time.Duration(i)*t.Tick))
	}
	page, next := t.peekPage("", limit)
	for _, p := range page[:min(2, len(page))] {
		t.must(t.cancelID(p.ID), "cancelling %s, which was listed", p.ID)
	}
	seen := make(map[string]int)
	for len(page) > 0 || next != "" {
		for _, p := range page {
			seen[p.ID]++
		}
		if page = nil; next != "" {
			page, next = t.peekPage(next, limit)
		}
	}
	for _, id := range ids {
		if seen[id] != 1 {
			t.fail("message %s was listed %d times; want 1", id, seen[id])
		}
	}
	_, _, err := t.q.Peek(t.ctx, "no such cursor", 1)
	t.want(err, backend.ErrInvalid, "Peek after a cursor that no Peek returned")
}

// peekTies cancels and pushes messages before and after the reader's page.
func peekTies(t *testRun) {
	n := t.scaled(40, 400)
	for _, limit := range []int{1, 3, 10} {
		due := t.now().Truncate(time.Second).Add(100 * t.Tick)
		ms := make([]backend.Message, n)
		for i := range ms {
			ms[i] = t.at(due)
		}
		t.push(ms...)
		gone := make(map[string]bool)
		remove := func(i int) {
			if i >= 0 && i < n && !gone[ms[i].ID] {
				t.must(t.cancelID(ms[i].ID), "cancelling")
				gone[ms[i].ID] = true
			}
		}
		seen, pages := make(map[string]int), 0
		for cursor := ""; pages == 0 || cursor != ""; pages++ {
			page, next := t.peekPage(cursor, limit)
			for _, p := range page {
				seen[p.ID]++
			}
			if cursor = next; len(gone) < n/2 {
				remove(pages * limit)      // of this page
				remove(n - 1 - 2*pages)    // of one to come
				t.push(t.at(due.Add(-1)))  // before
				t.push(t.at(due.Add(day))) // behind
			}
			if pages > 4*n {
				t.fail("Peek goes on after %d pages of %d messages", pages, n)
			}
		}
		for _, m := range ms {
			if times := seen[m.ID]; times != 1 && !gone[m.ID] || times > 1 {
				t.fail("message %s was listed %d times; want 1", m.ID, times)
			}
		}
		for _, p := range t.peekAll(100) {
			t.must(t.cancelID(p.ID), "cancelling the rest")
		}
	}
}
