package memory

import (
	"bytes"
	"slices"
	"testing"
)

func fillWith(b []byte, mark byte) { copy(b, bytes.Repeat([]byte{mark}, len(b))) }

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
		if len(p.buf) > maxPageSize && p.cells() > 1 {
			t.Fatalf("page %d has %d cells in %d bytes", i, p.cells(), len(p.buf))
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
