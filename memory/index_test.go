package memory

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/delayq/delayq/internal/record"
)

func TestIndexIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { newIndexModel().run(t) })
}

// An indexModel drives an index and a map side by side.
type indexModel struct {
	nodes *slab
	arena *arena
	index *index
	slots map[string]uint32
	ids   []string // in slots, to draw from
	made  int
}

func newIndexModel() *indexModel {
	m := &indexModel{nodes: newSlab(), arena: newArena(), slots: make(map[string]uint32)}
	m.index = newIndex(m.nodes, m.arena)
	return m
}

func (m *indexModel) run(t *rapid.T) {
	t.Repeat(map[string]func(*rapid.T){
		"add":        func(*rapid.T) { m.add() },
		"addMany":    func(t *rapid.T) { many(t, m.add) },
		"remove":     func(t *rapid.T) { m.remove(m.any(t)) },
		"removeMany": func(t *rapid.T) { many(t, func() { m.remove(0) }) },
		"find":       m.find,
		"findNone":   m.findNone,
		"check":      m.check,
	})
	m.check(t)
}

func many(t *rapid.T, do func()) {
	for range rapid.IntRange(1, pageLen).Draw(t, "n") {
		do()
	}
}

func (m *indexModel) add() {
	m.made++
	id := fmt.Sprint("id ", m.made)
	packed := record.PackID(nil, id)
	size := recordSize(packed, nil, nil)
	rec := m.arena.add(size)
	putRecord(m.arena.bytes(rec), packed, nil, nil)
	slot := m.nodes.add(rec)
	m.index.add(slot)
	m.slots[id] = slot
	m.ids = append(m.ids, id)
}

func (m *indexModel) any(t *rapid.T) int {
	if len(m.ids) == 0 {
		t.Skip("empty")
	}
	return rapid.IntRange(0, len(m.ids)-1).Draw(t, "id")
}

func (m *indexModel) remove(i int) {
	if i >= len(m.ids) {
		return
	}
	slot := m.slots[m.ids[i]]
	m.index.remove(slot)
	m.arena.remove(m.nodes.at(slot).rec())
	m.nodes.remove(slot)
	delete(m.slots, m.ids[i])
	m.ids = slices.Delete(m.ids, i, i+1)
}

func (m *indexModel) find(t *rapid.T) {
	id := m.ids[m.any(t)]
	if slot, ok := m.index.find(record.PackID(nil, id)); !ok || slot != m.slots[id] {
		t.Fatalf("find %q: %d %v, want %d", id, slot, ok, m.slots[id])
	}
}

// findNone looks for enough to walk many chains, those of ids that were there included.
func (m *indexModel) findNone(t *rapid.T) {
	for i := range 30 {
		for _, id := range []string{fmt.Sprint("id ", i+1), fmt.Sprint("no id ", i)} {
			slot, ok := m.index.find(record.PackID(nil, id))
			if want, there := m.slots[id]; ok != there || ok && slot != want {
				t.Fatalf("find %q: %d %v, want %d %v", id, slot, ok, want, there)
			}
		}
	}
}

func (m *indexModel) check(t *rapid.T) {
	mustBeIndex(t, m.index)
	if int(m.index.count) != len(m.slots) {
		t.Fatalf("count %d, want %d", m.index.count, len(m.slots))
	}
}

func mustBeIndex(t tb, x *index) {
	t.Helper()
	if x.low&(x.low-1) != 0 || x.low > x.n || x.n >= 2*x.low || x.n < minBuckets {
		t.Fatalf("%d buckets, power of two %d", x.n, x.low)
	}
	if x.count > perBucket*x.n || x.n > minBuckets && x.count+perBucket < perBucket*x.n/2 {
		t.Fatalf("%d ids in %d buckets", x.count, x.n)
	}
	for i := range x.n {
		mustBeChain(t, x, i)
	}
	if n := len(indexSlots(x)); n != int(x.count) {
		t.Fatalf("%d ids in the chains, %d counted", n, x.count)
	}
}

func mustBeChain(t tb, x *index, i uint32) {
	t.Helper()
	b := x.buckets.at(i)
	for slot := b.first; slot != none; slot = x.nodes.at(slot).next {
		h, n := x.hashOf(slot), x.nodes.at(slot)
		if x.bucket(h) != b || n.tag != tag(h) || b.seen&seenBit(n.tag) == 0 {
			t.Fatalf("slot %d of hash %x is in bucket %d with tag %x, seen %x", slot, h, i, n.tag, b.seen)
		}
	}
}

func indexSlots(x *index) []uint32 {
	var slots []uint32
	for i := range x.n {
		for slot := x.buckets.at(i).first; slot != none; slot = x.nodes.at(slot).next {
			slots = append(slots, slot)
		}
	}
	return slots
}

// A search in vain that walked a chain leaves no stale bit behind.
func TestIndexForgetsRemovedMessages(t *testing.T) {
	m := newIndexModel()
	for range minBuckets * perBucket {
		m.add()
	}
	for len(m.ids) > 0 {
		m.remove(0)
	}
	for i := range 10_000 {
		m.index.find(record.PackID(nil, fmt.Sprint("no id ", i)))
	}
	for i := range m.index.n {
		if seen := m.index.buckets.at(i).seen; seen != 0 {
			t.Errorf("bucket %d: %x", i, seen)
		}
	}
}
