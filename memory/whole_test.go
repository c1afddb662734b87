package memory

// The invariants of a store's inner parts between two operations.

func mustBeWhole(t tb, s *store) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	mustBeHeap(t, &s.due)
	mustBeHeap(t, &s.leases)
	mustBeIndex(t, s.ids)
	mustBeArena(t, s.arena)
	mustBePlaced(t, s)
	mustBeCounted(t, s)
	if s.windows != nil {
		mustBeWindows(t, s.windows)
	}
}

// mustBeWindows says that the parts of the windows agree, and that there are any.
func mustBeWindows(t tb, w *windows) {
	t.Helper()
	mustBeHeap(t, &w.ends)
	mustBeIndex(t, w.ids)
	mustBeArena(t, w.arena)
	live := int(w.nodes.live)
	if live == 0 || w.ends.len() != live || int(w.ids.count) != live || liveCells(w.arena) != live {
		t.Fatalf("%d slots, %d ends, %d ids, %d records of windows", live, w.ends.len(), w.ids.count, liveCells(w.arena))
	}
	var bytes int64
	for _, slot := range indexSlots(w.ids) {
		bytes += int64(len(w.arena.bytes(w.nodes.at(slot).rec())))
	}
	if bytes != w.bytes {
		t.Fatalf("%d bytes of windows counted, %d are in use", w.bytes, bytes)
	}
}

// mustBePlaced says that each message is where its state says, and nowhere else.
func mustBePlaced(t tb, s *store) {
	t.Helper()
	places := make(map[uint32]state)
	place := func(slot uint32, st state) {
		if other, twice := places[slot]; twice {
			t.Fatalf("slot %d is in places %d and %d", slot, other, st)
		}
		if places[slot] = st; s.nodes.at(slot).state() != st {
			t.Fatalf("slot %d is in place %d, its state is %d", slot, st, s.nodes.at(slot).state())
		}
	}
	for _, slot := range heapSlots(&s.due) {
		place(slot, scheduled)
	}
	for _, slot := range heapSlots(&s.leases) {
		place(slot, leased)
		if s.held.at(slot) == (key{}) {
			t.Fatalf("slot %d is leased without a key to come back with", slot)
		}
	}
	for _, slot := range deadSlots(t, &s.dead) {
		place(slot, dead)
	}
	if len(places) != int(s.nodes.live) {
		t.Fatalf("%d slots are in places, %d are in use", len(places), s.nodes.live)
	}
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

// mustBeCounted says that the parts agree on how much there is.
func mustBeCounted(t tb, s *store) {
	t.Helper()
	live := int(s.nodes.live)
	held := 0
	for _, p := range s.held.pages {
		if p != nil {
			held += p.n
		}
	}
	if records := liveCells(s.arena); int(s.ids.count) != live || records != live || held != s.leases.len() {
		t.Fatalf("%d slots, %d ids, %d records; %d leases, %d held", live, s.ids.count, records, s.leases.len(), held)
	}
	var bytes int64
	for _, slot := range indexSlots(s.ids) {
		bytes += int64(len(s.arena.bytes(s.nodes.at(slot).rec())))
	}
	if bytes != s.bytes {
		t.Fatalf("%d bytes counted, %d are in use", s.bytes, bytes)
	}
}

// mustBeEmpty says that nothing is left of any message, nor of any sleeper.
func mustBeEmpty(t tb, s *store) {
	t.Helper()
	mustBeWhole(t, s)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes.live != 0 || s.bytes != 0 || len(s.dead.letters) != 0 || s.ids.n != minBuckets {
		t.Fatalf("left: %d messages, %d bytes, %d dead letters, %d buckets",
			s.nodes.live, s.bytes, len(s.dead.letters), s.ids.n)
	}
	if n := len(s.held.pages); n > pageLen {
		t.Fatalf("left: a list of %d pages for keys of messages in flight", n)
	}
	if s.sleep.first != nil || s.sleep.last != nil || s.sleep.armed != 0 {
		t.Fatalf("left: a sleeper, or the timer")
	}
	for what, pages := range map[string]int{
		"nodes": len(s.nodes.nodes.pages), "due": len(s.due.keys.pages), "leases": len(s.leases.keys.pages),
		"buckets": len(s.ids.buckets.pages),
	} {
		if pages > 2 { // one in use by the heap's root, one to spare
			t.Fatalf("left: %d pages of %s", pages, what)
		}
	}
}
