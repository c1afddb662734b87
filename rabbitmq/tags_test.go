package rabbitmq

import (
	"testing"
	"time"
)

// What waits for its turn waits for a while, and not at all behind what does not move.
func TestTagsWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var ts tags
	for _, step := range []struct {
		what  string
		ack   []uint64
		after time.Duration
		waits int
	}{
		{"out of turn from the start", []uint64{3}, 0, 0},
		{"in turn, and some that are not", []uint64{1, 2, 6, 8}, 0, 2},
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
		ts.send(silence{}, now, func(uint64) bool { return true })
		if len(ts.acks) != step.waits {
			t.Errorf("%s: %v wait, want %d", step.what, ts.acks, step.waits)
		}
	}
	if ts.below != 12 || ts.sent != 8 {
		t.Errorf("%d acks sent up to %d, want 8 up to 12", ts.sent, ts.below)
	}
}

// Nothing waits for what nobody is at work on.
func TestTagsDoNotWaitForNobody(t *testing.T) {
	t.Parallel()
	ts := tags{moving: true}
	ts.ack(2)
	ts.send(silence{}, time.Now(), func(tag uint64) bool { return tag != 1 })
	if len(ts.acks) > 0 {
		t.Errorf("%v wait", ts.acks)
	}
}

// A call is over when the last of its acks is sent.
func TestTagsTell(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ts := tags{moving: true}
	ts.ack(2)
	ts.send(silence{}, now, func(uint64) bool { return true })
	if ts.toldUpTo(2) {
		t.Error("told of an ack that waits")
	}
	ts.hurry(silence{})
	if !ts.toldUpTo(2) {
		t.Error("not told of one that is sent")
	}
}

type silence struct{}

func (silence) Ack(uint64, bool) error { return nil }
