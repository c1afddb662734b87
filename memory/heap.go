package memory

// A heap orders slots by (when, seq). It is 4-ary, which halves the levels of a
// binary one, and keeps plain values without a pointer, so that the garbage
// collector has nothing to look at. Each slot's place is known, which makes
// removal from the middle O(log n).
//
// The root is at index 3, so that four siblings begin at a multiple of four and
// their keys share one cache line.
type heap struct {
	pos   *paged[uint32] // of each slot
	keys  paged[key]
	slots paged[uint32]
	n     uint32
}

type key struct {
	when int64 // nanoseconds since 1970
	seq  uint64
}

func (a key) before(b key) bool {
	return a.when < b.when || (a.when == b.when && a.seq < b.seq)
}

const root = 3

func parent(i uint32) uint32     { return i/4 + 2 }
func firstChild(i uint32) uint32 { return (i - 2) * 4 }

func (h *heap) len() int { return int(h.n) }

// head returns the first slot; the heap must not be empty.
func (h *heap) head() (key, uint32) { return *h.keys.at(root), *h.slots.at(root) }

func (h *heap) key(slot uint32) key { return *h.keys.at(*h.pos.at(slot)) }

func (h *heap) push(k key, slot uint32) {
	i := root + h.n
	h.n++
	h.keys.grow(i + 1)
	h.slots.grow(i + 1)
	h.up(i, k, slot)
}

// remove takes a slot out, wherever it is.
func (h *heap) remove(slot uint32) {
	i := *h.pos.at(slot)
	h.n--
	last := root + h.n
	k, moved := *h.keys.at(last), *h.slots.at(last)
	h.keys.shrink(last)
	h.slots.shrink(last)
	if i != last {
		h.place(i, k, moved)
	}
}

// move gives a slot another key.
func (h *heap) move(slot uint32, k key) { h.place(*h.pos.at(slot), k, slot) }

// place puts a slot into the hole at i, then where it belongs.
func (h *heap) place(i uint32, k key, slot uint32) {
	if i > root && k.before(*h.keys.at(parent(i))) {
		h.up(i, k, slot)
	} else {
		h.down(i, k, slot)
	}
}

func (h *heap) up(i uint32, k key, slot uint32) {
	for i > root {
		p := parent(i)
		if !k.before(*h.keys.at(p)) {
			break
		}
		h.set(i, *h.keys.at(p), *h.slots.at(p))
		i = p
	}
	h.set(i, k, slot)
}

func (h *heap) down(i uint32, k key, slot uint32) {
	for {
		c, ok := h.leastChild(i)
		if !ok || !h.keys.at(c).before(k) {
			break
		}
		h.set(i, *h.keys.at(c), *h.slots.at(c))
		i = c
	}
	h.set(i, k, slot)
}

func (h *heap) leastChild(i uint32) (uint32, bool) {
	first, end := firstChild(i), root+h.n
	if first >= end {
		return 0, false
	}
	least := first
	for c := first + 1; c < min(first+4, end); c++ {
		if h.keys.at(c).before(*h.keys.at(least)) {
			least = c
		}
	}
	return least, true
}

func (h *heap) set(i uint32, k key, slot uint32) {
	*h.keys.at(i) = k
	*h.slots.at(i) = slot
	*h.pos.at(slot) = i
}

// countUntil counts the slots whose when is at or before t, up to limit. It visits only those and
// their children.
func (h *heap) countUntil(t int64, limit int) int {
	return h.countUnder(root, t, limit)
}

func (h *heap) countUnder(i uint32, t int64, limit int) int {
	if limit == 0 || i >= root+h.n || h.keys.at(i).when > t {
		return 0
	}
	n := 1
	first := firstChild(i)
	for c := first; c < first+4; c++ {
		n += h.countUnder(c, t, limit-n)
	}
	return n
}
