package memory

import "testing"

func TestSlabUsesSlotsAgain(t *testing.T) {
	s := newSlab()
	a, b := s.add(ref{1, 1}), s.add(ref{2, 2})
	s.remove(a)
	if c := s.add(ref{3, 3}); c != a || s.at(c).rec() != (ref{3, 3}) || s.used != 2 {
		t.Errorf("slot %d of %d used, want %d of 2", c, s.used, a)
	}
	if s.at(b).rec() != (ref{2, 2}) {
		t.Errorf("slot %d holds %v", b, s.at(b).rec())
	}
}

func TestEmptySlabGivesPagesBack(t *testing.T) {
	s := newSlab()
	const n = 3 * pageLen
	for range n {
		s.add(ref{})
	}
	for slot := range uint32(n) {
		s.remove(slot)
	}
	if len(s.nodes.pages) > 1 || len(s.pos.pages) > 1 {
		t.Errorf("%d and %d pages left", len(s.nodes.pages), len(s.pos.pages))
	}
	if slot := s.add(ref{}); slot != 0 {
		t.Errorf("the next slot is %d", slot)
	}
}

// A record's page and cell share a word with the id's hash, each with all of its bits.
func TestNodePlace(t *testing.T) {
	const lastPage, lastCell, lastHash = 1<<24 - 1, maxPageSize/minCell - 1, 1<<hashBits - 1
	for _, rec := range []ref{{0, 0}, {0, lastCell}, {lastPage, 0}, {lastPage, lastCell}, {1 << 23, 1 << 12}} {
		for _, hash := range []uint32{0, 1, lastHash} {
			var n node
			n.setRec(ref{lastPage, lastCell})
			n.setHash(lastHash)
			n.setHash(hash)
			n.setRec(rec)
			if n.rec() != rec || n.hash() != hash {
				t.Errorf("set %v and %x: got %v and %x", rec, hash, n.rec(), n.hash())
			}
		}
	}
}

// State and attempts share a word.
func TestNodeAttempts(t *testing.T) {
	for _, c := range []struct{ set, want int }{{0, 0}, {5, 5}, {-1, 0}, {maxAttempts, maxAttempts}, {maxAttempts + 1, maxAttempts}} {
		for _, st := range []state{scheduled, leased, dead} {
			var n node
			n.enter(st)
			n.setAttempt(c.set)
			if n.attempt() != c.want || n.state() != st {
				t.Errorf("set %d in state %d: attempt %d, state %d", c.set, st, n.attempt(), n.state())
			}
			n.enter(scheduled)
			if n.attempt() != c.want {
				t.Errorf("attempt %d after a change of state, want %d", n.attempt(), c.want)
			}
		}
	}
}
