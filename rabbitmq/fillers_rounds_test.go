package rabbitmq

import (
	"testing"
	"time"
)

// TestFillerRounds publishes rounds of which other handles get all: each has twice as many fillers,
// and a longer pause after it.
func TestFillerRounds(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var f fillers
	for i, want := range []int{3, 6, 12, 24} {
		if n := f.nextRound(3, now); n != want {
			t.Fatalf("round %d has %d fillers, want %d", i, n, want)
		}
		if pause := f.published(make([]error, want)); pause != fillPause<<i {
			t.Errorf("the pause after round %d is %v, want %v", i, pause, fillPause<<i)
		}
	}
	if n := f.nextRound(500, now); n != mostFillers {
		t.Errorf("a round has %d fillers, want %d at most", n, mostFillers)
	}
	if pause := f.published([]error{nil, errRefused}); pause < refusedPause || f.others != 45+mostFillers-1 {
		t.Errorf("after a refusal the pause is %v, and %d fillers are elsewhere", pause, f.others)
	}
	f.keep(new(delivery))
	if f.expired(now.Add(fillWithin-1)) || !f.expired(now.Add(fillWithin)) {
		t.Errorf("want filling to expire after %v", fillWithin)
	}
	f.publishing = true
	f.reset()
	if f.expired(now.Add(time.Hour)) || f.others != 0 || !f.publishing || len(f.kept) != 1 {
		t.Errorf("reset leaves %+v", f)
	}
	if pause := f.published([]error{errRefused}); pause != fillPause || f.others != 0 {
		t.Errorf("a round published before reset counts: %v, %d others", pause, f.others)
	}
}
