package memory

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestHeapIsASortedSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { newHeapModel().run(t) })
}

// A heapModel drives a heap and a sorted slice side by side.
type heapModel struct {
	heap   heap
	pos    paged[uint32]
	sorted []entry
	pushes uint64
}

type entry struct {
	key
	slot uint32
}

func compareEntries(a, b entry) int {
	return cmp.Or(cmp.Compare(a.when, b.when), cmp.Compare(a.seq, b.seq))
}

func newHeapModel() *heapModel {
	m := &heapModel{}
	m.heap.pos = &m.pos
	return m
}

func (m *heapModel) run(t *rapid.T) {
	t.Repeat(map[string]func(*rapid.T){
		"push":     func(t *rapid.T) { m.push(when(t)) },
		"pushMany": m.pushMany,
		"popMany":  m.popMany,
		"remove":   func(t *rapid.T) { m.remove(m.any(t)) },
		"move":     func(t *rapid.T) { m.move(m.any(t), when(t)) },
		"count":    m.count,
		"after":    m.after,
		"check":    m.check,
	})
	m.check(t)
}

// when draws from few values, so that many keys differ in seq alone.
func when(t *rapid.T) int64 { return rapid.Int64Range(0, 20).Draw(t, "when") }

func (m *heapModel) push(when int64) {
	e := entry{key{when, m.pushes}, uint32(m.pushes)}
	m.pushes++
	m.pos.grow(e.slot + 1)
	m.heap.push(e.key, e.slot)
	m.insert(e)
}

func (m *heapModel) insert(e entry) {
	at, _ := slices.BinarySearchFunc(m.sorted, e, compareEntries)
	m.sorted = slices.Insert(m.sorted, at, e)
}

// pushMany and popMany cross the borders of pages.
func (m *heapModel) pushMany(t *rapid.T) {
	for range rapid.IntRange(1, pageLen).Draw(t, "n") {
		m.push(int64(m.pushes * 7919 % 20))
	}
}

func (m *heapModel) popMany(t *rapid.T) {
	for range rapid.IntRange(1, pageLen).Draw(t, "n") {
		if len(m.sorted) > 0 {
			m.remove(0)
		}
	}
}

func (m *heapModel) any(t *rapid.T) int {
	if len(m.sorted) == 0 {
		t.Skip("empty")
	}
	return rapid.IntRange(0, len(m.sorted)-1).Draw(t, "entry")
}

func (m *heapModel) remove(i int) {
	m.heap.remove(m.sorted[i].slot)
	m.sorted = slices.Delete(m.sorted, i, i+1)
}

func (m *heapModel) move(i int, when int64) {
	e := m.sorted[i]
	e.when = when
	m.heap.move(e.slot, e.key)
	m.sorted = slices.Delete(m.sorted, i, i+1)
	m.insert(e)
}

func (m *heapModel) count(t *rapid.T) {
	until, limit := when(t), rapid.IntRange(0, 3000).Draw(t, "limit")
	want := 0
	for _, e := range m.sorted {
		if e.when <= until && want < limit {
			want++
		}
	}
	if got := m.heap.countUntil(until, limit); got != want {
		t.Fatalf("countUntil(%d, %d) = %d, want %d", until, limit, got, want)
	}
}

// after goes on behind an entry, or behind a place where none is any more.
func (m *heapModel) after(t *rapid.T) {
	k := key{when(t), rapid.Uint64Range(0, m.pushes).Draw(t, "seq")}
	n := rapid.IntRange(0, 50).Draw(t, "n")
	var want []uint32
	for _, e := range m.sorted {
		if k.before(e.key) && len(want) < n {
			want = append(want, e.slot)
		}
	}
	if got := m.heap.after(k, n); !slices.Equal(got, want) {
		t.Fatalf("after(%v, %d) = %v, want %v", k, n, got, want)
	}
}

func (m *heapModel) check(t *rapid.T) {
	mustBeHeap(t, &m.heap)
	if m.heap.len() != len(m.sorted) {
		t.Fatalf("len %d, want %d", m.heap.len(), len(m.sorted))
	}
	if len(m.sorted) == 0 {
		return
	}
	k, slot := m.heap.head()
	if want := m.sorted[0]; k != want.key || slot != want.slot {
		t.Fatalf("head %v of slot %d, want %v", k, slot, want)
	}
	last := m.sorted[len(m.sorted)-1]
	if got := m.heap.key(last.slot); got != last.key {
		t.Fatalf("key of slot %d is %v, want %v", last.slot, got, last.key)
	}
}

func mustBeHeap(t tb, h *heap) {
	t.Helper()
	for i := uint32(root); i < root+h.n; i++ {
		if i > root && h.keys.at(i).before(*h.keys.at(parent(i))) {
			t.Fatalf("the heap is out of order at %d", i)
		}
		if slot := *h.slots.at(i); *h.pos.at(slot) != i {
			t.Fatalf("slot %d is at %d and believes to be at %d", slot, i, *h.pos.at(slot))
		}
	}
	if need := int(root+h.n+pageLen-1) >> pageBits; len(h.keys.pages) > need+1 {
		t.Fatalf("%d pages for %d keys", len(h.keys.pages), h.n)
	}
}

func heapSlots(h *heap) []uint32 {
	var slots []uint32
	for i := uint32(root); i < root+h.n; i++ {
		slots = append(slots, *h.slots.at(i))
	}
	return slots
}

// Each node's children name it as their parent, and siblings begin a cache line.
func TestHeapGeometry(t *testing.T) {
	next := uint32(root + 1)
	for i := uint32(root); i < 10_000; i++ {
		first := firstChild(i)
		if first != next || first%4 != 0 {
			t.Fatalf("children of %d begin at %d, want %d", i, first, next)
		}
		for c := first; c < first+4; c++ {
			if parent(c) != i {
				t.Fatalf("parent of %d is %d, want %d", c, parent(c), i)
			}
		}
		next = first + 4
	}
}
