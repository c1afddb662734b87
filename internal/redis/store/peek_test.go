package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
)

// waiting reads all pages.
func (b *bench) waiting(limit int) (ids []string) {
	b.t.Helper()
	for _, p := range slices.Concat(redistest.Pages(b.ctx, b.t, b.Peek, limit)...) {
		if string(p.Body) != "body of "+p.ID {
			b.t.Errorf("%s has the body %q", p.ID, p.Body)
		}
		ids = append(ids, p.ID)
	}
	return ids
}

// Messages of one due time are told apart by their bytes, and pages go on between them.
func TestPeekThroughTies(t *testing.T) {
	t.Parallel()
	b := setup(t)
	due := time.Now().Add(time.Hour)
	var want []string
	var ms []backend.Message
	for i := range 1200 { // more than one script lists
		id := fmt.Sprintf("%c%d", rune(i%255+1), i)
		want, ms = append(want, id), append(ms, backend.Message{ID: id, Body: []byte("body of " + id), Due: due})
	}
	b.all(b.Schedule(b.ctx, ms))
	for _, limit := range []int{7, 5000} {
		if got := b.waiting(limit); !slices.Equal(got, want) {
			t.Errorf("pages of %d: got %d: %.200q", limit, len(got), got)
		}
	}
}

// Messages that a mover left in its list count as waiting, and so do messages of ended leases.
func TestPeekShowsMovedMessages(t *testing.T) {
	t.Parallel()
	b := pushedAndMoved(t)
	b.pushAfter(time.Hour, "far")
	b.push("b", "c")
	must(b.t, b.raw.LPush(b.ctx, b.key("ready"), "no member of any message").Err())
	for _, limit := range []int{1, 2, 10} {
		if got := b.waiting(limit); !slices.Equal(got, []string{"a", "b", "c", "far"}) {
			t.Errorf("pages of %d: got %q", limit, got)
		}
	}
	b.claim(b.Claim, time.Millisecond)
	for end := time.Now().Add(patience); len(b.waiting(2)) < 4; {
		if time.Now().After(end) {
			t.Fatalf("ended leases are not shown: %q", b.waiting(2))
		}
	}
	page, _, err := b.Peek(b.ctx, "", 1)
	if err != nil || page[0].Attempts != 1 || page[0].ID != "a" {
		t.Errorf("got %+v, %v", page, err)
	}
	if n, err := b.Purge(b.ctx); err != nil || n != 4 {
		t.Errorf("purged %d, %v", n, err)
	}
	b.empty()
}

// A worker that has won messages, and finds them purged when it reads them, gets none.
func TestPurgedWhileArbitrating(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.push("a", "b")
	purge := func() {
		_, err := b.Purge(b.ctx)
		must(b.t, err)
	}
	c, err := b.faulty(&redistest.Fault{At: "hmget", Before: purge}).Arbitrate(b.ctx, 10, time.Minute, "late")
	if err != nil || len(c.Deliveries) != 0 {
		t.Errorf("got %+v, %v", c, err)
	}
	b.empty()
}

// A worker that has won a message gets none if it is purged, and pushed again for later, before it
// is read. The new one comes when it is due.
func TestPushedAgainWhileArbitrating(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.push("a")
	anew := func() {
		_, err := b.Purge(b.ctx)
		must(b.t, err)
		b.pushAfter(time.Hour, "a")
	}
	c, err := b.faulty(&redistest.Fault{At: "hmget", Before: anew}).Arbitrate(b.ctx, 10, time.Minute, "late")
	if err != nil || len(c.Deliveries) != 0 {
		t.Errorf("got %+v, %v", c, err)
	}
	b.nothing(b.Arbitrate)
	b.move("a", 0)
	if d := b.next(b.Arbitrate, time.Minute, "a"); d.Attempt != 1 {
		t.Errorf("attempt %d", d.Attempt)
	}
}

func TestPeekStopsAtManyBytes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 12 {
		m := backend.Message{ID: fmt.Sprint(i), Body: make([]byte, 1<<20), Delay: time.Hour}
		b.all(b.Schedule(b.ctx, []backend.Message{m}))
	}
	page, next, err := b.Peek(b.ctx, "", 100)
	if err != nil || len(page) != 8 || next == "" {
		t.Fatalf("got %d messages, next %q, %v", len(page), next, err)
	}
	if page, next, err = b.Peek(b.ctx, next, 100); err != nil || len(page) != 4 || next != "" {
		t.Errorf("got %d messages, next %q, %v", len(page), next, err)
	}
}
