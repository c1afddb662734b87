package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/delayq/delayq/backend"
)

func TestDeadListIsASlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var pos paged[uint32]
		l := deadList{pos: &pos}
		var want []uint32
		var slots uint32
		t.Repeat(map[string]func(*rapid.T){
			"add": func(*rapid.T) {
				pos.grow(slots + 1)
				l.add(slots, 1, 2, "reason")
				want = append(want, slots)
				slots++
			},
			"remove": func(t *rapid.T) {
				if len(want) == 0 {
					t.Skip("empty")
				}
				i := rapid.IntRange(0, len(want)-1).Draw(t, "letter")
				l.remove(want[i])
				want = slices.Delete(want, i, i+1)
			},
			"": func(t *rapid.T) {
				if got := deadSlots(t, &l); !slices.Equal(got, want) {
					t.Fatalf("letters of slots %v, want %v", got, want)
				}
			},
		})
	})
}

// deadSlots returns the slots of a sound list in order.
func deadSlots(t tb, l *deadList) []uint32 {
	t.Helper()
	var slots []uint32
	var last uint64
	for i, d := range l.letters {
		if d.seq <= last {
			t.Fatalf("letter %d has seq %d after %d", i, d.seq, last)
		}
		last = d.seq
		if d.slot == none {
			continue
		}
		if *l.pos.at(d.slot) != uint32(i) {
			t.Fatalf("slot %d is at %d and believes to be at %d", d.slot, i, *l.pos.at(d.slot))
		}
		slots = append(slots, d.slot)
	}
	if len(slots) != l.len() || l.holes != len(l.letters)-len(slots) || l.holes > len(l.letters)/2 {
		t.Fatalf("%d letters, len %d, %d holes of %d", len(slots), l.len(), l.holes, len(l.letters))
	}
	return slots
}

// A letter that stays while others come and go between the pages of a listing is listed once, and
// all letters are in the order of their deaths.
func TestListDeadWhileLettersComeAndGo(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		q, _ := open(t)
		g := &deadQueue{q: q}
		for range rapid.IntRange(0, 30).Draw(rt, "letters") {
			g.makeDead(rt)
		}
		there := slices.Clone(g.ids)
		var listed []string
		for cursor, more := "", true; more; more = cursor != "" {
			page, next, err := q.ListDead(context.Background(), cursor, rapid.IntRange(1, 5).Draw(rt, "limit"))
			must(rt, err)
			for _, l := range page {
				listed = append(listed, l.ID)
			}
			cursor = next
			g.comeAndGo(rt)
		}
		g.check(rt, there, listed)
		mustBeWhole(rt, q.store)
	})
}

// deadQueue is a queue whose dead letters are known.
type deadQueue struct {
	q    *queue
	ids  []string // in the order of death
	made int
}

func (g *deadQueue) makeDead(t tb) {
	t.Helper()
	g.made++
	mustPush(t, g.q, fmt.Sprintf("%06d", g.made), 0)
	g.makeDueDead(t)
}

func (g *deadQueue) makeDueDead(t tb) {
	t.Helper()
	d := mustTake(t, g.q, 1, time.Minute)[0]
	mustAll(t, g.q.Dead(context.Background(), []backend.Burial{{Lease: d.Lease(), Reason: "reason of " + d.ID}}))
	g.ids = append(g.ids, d.ID)
}

func (g *deadQueue) comeAndGo(t *rapid.T) {
	for range rapid.IntRange(0, 4).Draw(t, "changes") {
		if len(g.ids) == 0 || rapid.Bool().Draw(t, "come") {
			g.makeDead(t)
			continue
		}
		i := rapid.IntRange(0, len(g.ids)-1).Draw(t, "letter")
		mustAll(t, g.q.DeleteDead(context.Background(), g.ids[i:i+1]))
		g.ids = slices.Delete(g.ids, i, i+1)
	}
}

func (g *deadQueue) check(t *rapid.T, there, listed []string) {
	if !slices.IsSorted(listed) || len(slices.Compact(slices.Clone(listed))) != len(listed) {
		t.Fatalf("out of order or twice: %v", listed)
	}
	for _, id := range there {
		if slices.Contains(g.ids, id) && !slices.Contains(listed, id) {
			t.Fatalf("%s was there all the time and not listed: %v", id, listed)
		}
	}
}

func TestDeadLetterIsWhole(t *testing.T) {
	q, clock := open(t)
	ctx := context.Background()
	m := backend.Message{ID: "id", Body: []byte("body"), Headers: map[string]string{"k": "v"}, Due: epoch.Add(-time.Hour)}
	mustAll(t, q.Schedule(ctx, []backend.Message{m}))
	clock.Advance(time.Second)
	(&deadQueue{q: q}).makeDueDead(t)
	ls, next, err := q.ListDead(ctx, "", 10)
	must(t, err)
	if len(ls) != 1 || next != "" {
		t.Fatalf("%d letters, next %q", len(ls), next)
	}
	want := "{id [98 111 100 121] map[k:v] 2029-12-31 23:00:00 +0000 UTC 1 reason of id 2030-01-01 00:00:01 +0000 UTC}"
	if got := fmt.Sprint(ls[0]); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestRedriveStartsOver(t *testing.T) {
	q, clock := open(t)
	ctx := context.Background()
	g := &deadQueue{q: q}
	g.makeDead(t)
	g.makeDead(t)
	clock.Advance(time.Hour)
	mustAll(t, q.Redrive(ctx, g.ids[:1]))
	if err := one(q.Redrive(ctx, g.ids[:1])); !errors.Is(err, backend.ErrNotFound) {
		t.Errorf("redriven twice: %v", err)
	}
	mustBeWhole(t, q.store)
	d := mustTake(t, q, 10, time.Minute)
	if len(d) != 1 || d[0].ID != g.ids[0] || d[0].Attempt != 1 || !d[0].Due.Equal(clock.Now()) {
		t.Errorf("got %+v", d)
	}
}

func TestListDeadCursor(t *testing.T) {
	q, _ := open(t)
	_, _, err := q.ListDead(context.Background(), "elsewhere", 1)
	if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), `"elsewhere"`) {
		t.Errorf("a foreign cursor: %v", err)
	}
}
