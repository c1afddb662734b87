package memory

import (
	"testing"
)

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
