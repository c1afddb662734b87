package rabbitmq

import (
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
