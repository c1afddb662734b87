package memory

import "math"

// Windows are the ids that stay taken after their messages are gone, each until a time. They are
// stored apart from the messages: a queue without windows has none of this.
type windows struct {
	nodes  *slab
	arena  *arena
	ids    *index
	ends   heap // by (end, order of opening)
	opened uint64
	bytes  int64 // in cells of the arena
}

func newWindows() *windows {
	nodes, arena := newSlab(), newArena()
	return &windows{nodes: nodes, arena: arena, ids: newIndex(nodes, arena), ends: heap{pos: &nodes.pos}}
}

// end returns when the window of an id ends or has ended, or the least time where there is none.
func (w *windows) end(packed []byte) int64 {
	if w == nil {
		return math.MinInt64
	}
	if slot, ok := w.ids.find(packed); ok {
		return w.ends.key(slot).when
	}
	return math.MinInt64
}

// open opens a window, in place of one that has ended.
func (w *windows) open(packed []byte, end int64) {
	w.opened++
	k := key{end, w.opened}
	if slot, ok := w.ids.find(packed); ok {
		w.ends.move(slot, k)
		return
	}
	rec := w.arena.add(len(packed))
	cell := w.arena.bytes(rec)
	copy(cell, packed)
	w.bytes += int64(len(cell))
	slot := w.nodes.add(rec)
	w.ids.add(slot)
	w.ends.push(k, slot)
}

// forget drops up to limit windows that have ended.
func (w *windows) forget(now int64, limit int) {
	for ; limit > 0 && w.ends.len() > 0; limit-- {
		k, slot := w.ends.head()
		if k.when > now {
			return
		}
		w.ends.remove(slot)
		w.ids.remove(slot)
		rec := w.nodes.at(slot).rec()
		w.bytes -= int64(len(w.arena.bytes(rec)))
		w.arena.remove(rec)
		w.nodes.remove(slot)
	}
}

// How many windows that have ended are dropped: in a call of the queue, and when a window opens, so
// that in batches too they go faster than they come.
const (
	fewWindows = 16
	perWindow  = 2
)

// forgetWindowsLocked drops some windows that have ended, and with the last one all that they took.
func (s *store) forgetWindowsLocked(now int64, limit int) {
	if s.windows == nil {
		return
	}
	s.windows.forget(now, limit)
	if s.windows.ends.len() == 0 {
		s.windows = nil
	}
}

// openWindowLocked keeps the id that is packed taken until the end.
func (s *store) openWindowLocked(now, end int64) {
	if s.windows == nil {
		s.windows = newWindows()
	}
	s.windows.forget(now, perWindow)
	s.windows.open(s.packed, end)
}

func (w *windows) size() int64 {
	if w == nil {
		return 0
	}
	return w.bytes
}
