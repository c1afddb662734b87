package rabbitmq

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestTagsWaitForLowerTags acks out of order. Acks wait for lower tags for a bounded time, and then
// not behind a delivery that stays unsettled.
func TestTagsWaitForLowerTags(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var ts tags
	for _, step := range []struct {
		what  string
		ack   []uint64
		after time.Duration
		waits int
	}{
		{"out of order from the start", []uint64{3}, 0, 0},
		{"in order, and some that are not", []uint64{1, 2, 6, 8}, 0, 2},
		{"more that are not", []uint64{9}, waitTurn / 2, 3},
		{"those between", []uint64{4, 5}, 0, 2},
		{"too late", nil, waitTurn / 2, 0},
		{"behind one that does not come", []uint64{10}, 0, 0},
		{"once it has come", []uint64{7, 12}, 0, 1},
		{"with the one before", []uint64{11}, 0, 0},
	} {
		now = now.Add(step.after)
		for _, tag := range step.ack {
			ts.ack(tag)
		}
		ts.send(ackLog{}, now, func(uint64) bool { return true })
		if len(ts.acks) != step.waits {
			t.Errorf("%s: %v wait, want %d", step.what, ts.acks, step.waits)
		}
	}
	if ts.below != 12 || ts.sent != 8 {
		t.Errorf("%d acks sent up to %d, want 8 up to 12", ts.sent, ts.below)
	}
}

func TestTagsDoNotWaitForUnleased(t *testing.T) {
	t.Parallel()
	ts := tags{moving: true}
	ts.ack(2)
	ts.send(ackLog{}, time.Now(), func(tag uint64) bool { return tag != 1 })
	if len(ts.acks) > 0 {
		t.Errorf("%v wait", ts.acks)
	}
}

func TestTagsSentUpTo(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ts := tags{moving: true}
	ts.ack(2)
	ts.send(ackLog{}, now, func(uint64) bool { return true })
	if ts.sentUpTo(2) {
		t.Error("an ack that waits counts as sent")
	}
	ts.hurry(ackLog{})
	if !ts.sentUpTo(2) {
		t.Error("an ack that is sent does not count as sent")
	}
}

// TestTagsBehindOneStaySmall settles a million deliveries while one with a lower tag stays
// unsettled, as a slow handler's does.
func TestTagsBehindOneStaySmall(t *testing.T) {
	t.Parallel()
	const n = 1_000_000
	var ts tags
	for tag := uint64(3); tag <= n; tag += 2 { // pairs, out of order
		ts.settle(tag)
		ts.settle(tag - 1)
	}
	ts.settle(n)
	if ts.below != 0 || len(ts.settled) != 1 {
		t.Errorf("everything up to %d is settled, and %d ranges", ts.below, len(ts.settled))
	}
	if ts.settle(1); ts.below != n || len(ts.settled) != 0 {
		t.Errorf("everything up to %d is settled, and %v", ts.below, ts.settled)
	}
}

// TestTagsInAnyOrder settles tags in random order, some of them twice.
func TestTagsInAnyOrder(t *testing.T) {
	t.Parallel()
	const n = 2000
	var ts tags
	settled, below := make(map[uint64]bool), uint64(0)
	for _, i := range rand.Perm(2 * n) {
		tag := uint64(i%n) + 1
		ts.settle(tag)
		for settled[tag] = true; settled[below+1]; {
			below++
		}
		if ts.below != below {
			t.Fatalf("everything up to %d is settled, want %d", ts.below, below)
		}
	}
	if below != n || len(ts.settled) != 0 {
		t.Errorf("everything up to %d is settled, and %v", below, ts.settled)
	}
}

func BenchmarkTags(b *testing.B) {
	var ts tags
	next := uint64(0)
	for b.Loop() { // blocks of 64, each from its end
		for i := uint64(64); i > 0; i-- {
			ts.settle(next + i)
		}
		next += 64
	}
}
