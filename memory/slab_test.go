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
