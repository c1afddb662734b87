package memory

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestArenaCellsDoNotOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { newArenaModel().run(t) })
}

// An arenaModel fills each cell, its spare bytes included, with a mark of its own, and finds it
// there until the cell is removed.
type arenaModel struct {
	arena *arena
	cells []cell
	marks byte
}

type cell struct {
	ref  ref
	size int
	mark byte
}

func newArenaModel() *arenaModel { return &arenaModel{arena: newArena()} }

func (m *arenaModel) run(t *rapid.T) {
	t.Repeat(map[string]func(*rapid.T){
		"add":       func(t *rapid.T) { m.add(t, rapid.IntRange(1, 3000).Draw(t, "size")) },
		"addLarge":  func(t *rapid.T) { m.add(t, maxPageSize+rapid.IntRange(-1000, 1000).Draw(t, "size")) },
		"addMany":   m.addMany,
		"remove":    func(t *rapid.T) { m.remove(t, m.any(t)) },
		"removeAll": m.removeAll,
		"":          m.check,
	})
}

func (m *arenaModel) add(t *rapid.T, n int) {
	m.marks++
	c := cell{m.arena.add(n), n, m.marks}
	b := m.arena.bytes(c.ref)
	if len(b) < n || len(b) > n+n/8+minCell || len(b) != int(cellSize(n)) {
		t.Fatalf("%d bytes for %d", len(b), n)
	}
	fillWith(b, c.mark)
	m.cells = append(m.cells, c)
}

func fillWith(b []byte, mark byte) { copy(b, bytes.Repeat([]byte{mark}, len(b))) }

// addMany fills several pages of one size.
func (m *arenaModel) addMany(t *rapid.T) {
	size := rapid.SampledFrom([]int{1, 8, 120, 5000}).Draw(t, "size")
	for range rapid.IntRange(1, 50).Draw(t, "n") {
		m.add(t, size)
	}
}

func (m *arenaModel) any(t *rapid.T) int {
	if len(m.cells) == 0 {
		t.Skip("empty")
	}
	return rapid.IntRange(0, len(m.cells)-1).Draw(t, "cell")
}

func (m *arenaModel) remove(t *rapid.T, i int) {
	m.mustKeep(t, m.cells[i])
	m.arena.remove(m.cells[i].ref)
	m.cells = slices.Delete(m.cells, i, i+1)
}

func (m *arenaModel) removeAll(t *rapid.T) {
	for len(m.cells) > 0 {
		m.remove(t, m.any(t))
	}
}

func (m *arenaModel) mustKeep(t *rapid.T, c cell) {
	b := m.arena.bytes(c.ref)
	if bytes.Count(b, []byte{c.mark}) != len(b) {
		t.Fatalf("the cell of %d bytes at %v was written to by another", c.size, c.ref)
	}
}

func (m *arenaModel) check(t *rapid.T) {
	mustBeArena(t, m.arena)
	if n := liveCells(m.arena); n != len(m.cells) {
		t.Fatalf("%d cells in use, want %d", n, len(m.cells))
	}
	for _, c := range m.cells {
		m.mustKeep(t, c)
	}
}

func mustBeArena(t tb, a *arena) {
	t.Helper()
	empty := make(map[*class]int)
	for i, p := range a.pages {
		if p == nil {
			if !slices.Contains(a.vacant, uint32(i)) {
				t.Fatalf("page %d is gone and its place lost", i)
			}
			continue
		}
		if p.live == 0 {
			empty[p.class]++
		}
		if p.full() != (p.room < 0) || !p.full() && p.class.room[p.room] != uint32(i) {
			t.Fatalf("page %d has %d of %d cells in use and is at %d of those with room", i, p.live, p.cells(), p.room)
		}
	}
	for c, n := range empty {
		if n > 1 || c.size > maxPageSize {
			t.Fatalf("%d empty pages of cells of %d bytes", n, c.size)
		}
	}
	if len(a.classes) > 200 {
		t.Fatalf("%d classes", len(a.classes))
	}
}

func liveCells(a *arena) (n int) {
	for _, p := range a.pages {
		if p != nil {
			n += int(p.live)
		}
	}
	return n
}

// Sizes from the smallest to beyond the largest page: never too small, never an eighth
// too large, and as many sizes as stay countable.
func TestCellSize(t *testing.T) {
	sizes := make(map[uint32]bool)
	for n := 1; n <= maxPageSize; n++ {
		size := int(cellSize(n))
		if size < n || size >= n+max(minCell, n/8+1) {
			t.Fatalf("%d bytes for %d", size, n)
		}
		sizes[uint32(size)] = true
	}
	if len(sizes) > 100 {
		t.Errorf("%d sizes", len(sizes))
	}
	if n := maxPageSize + 1; cellSize(n) != uint32(n) {
		t.Errorf("%d bytes for %d", cellSize(n), n)
	}
}

// The pages of ten thousand records go with them, all but one, so that a queue that swings
// between none and one does not allocate each time.
func TestArenaGivesPagesBack(t *testing.T) {
	a := newArena()
	var refs []ref
	for range 10_000 {
		refs = append(refs, a.add(120))
	}
	for _, r := range refs {
		a.remove(r)
	}
	if pages := len(a.pages) - len(a.vacant); pages != 1 {
		t.Errorf("%d pages left", pages)
	}
	a.add(120)
	if got, pages := len(a.pages), len(refs)/500; got > 2*pages {
		t.Errorf("%d places for pages", got)
	}
}

// Two large records of one size, of which the first makes the class and leaves first.
func TestArenaLargeOfOneSize(t *testing.T) {
	a := newArena()
	const n = 1 << 20
	first, second := a.add(n), a.add(n)
	a.remove(first)
	third := a.add(n)
	fillWith(a.bytes(third), 3)
	fillWith(a.bytes(second), 2)
	if a.bytes(third)[0] != 3 {
		t.Error("two records share a cell")
	}
	a.remove(second)
	a.remove(third)
	if len(a.pages) != len(a.vacant) || len(a.classes) != 0 {
		t.Errorf("left: %d pages, %d classes", len(a.pages)-len(a.vacant), len(a.classes))
	}
}
