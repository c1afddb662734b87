package memory

import (
	"fmt"
	"testing"
	"time"

	"github.com/delayq/delayq/internal/record"
)

func mustBeIndex(t tb, x *index) {
	t.Helper()
	if x.low&(x.low-1) != 0 || x.low > x.n || x.n >= 2*x.low || x.n < minBuckets {
		t.Fatalf("%d buckets, power of two %d", x.n, x.low)
	}
	if x.count > perBucket*x.n || x.n > minBuckets && x.count+perBucket < perBucket*x.n/2 {
		t.Fatalf("%d ids in %d buckets", x.count, x.n)
	}
	for i := range x.n {
		mustBeChain(t, x, i)
	}
	if n := len(indexSlots(x)); n != int(x.count) {
		t.Fatalf("%d ids in the chains, %d counted", n, x.count)
	}
}

func mustBeChain(t tb, x *index, i uint32) {
	t.Helper()
	b := x.buckets.at(i)
	for slot := b.first; slot != none; slot = x.nodes.at(slot).next {
		n := x.nodes.at(slot)
		if h := x.hash(x.id(n)); n.hash() != h || x.bucket(h) != b || b.seen&seenBit(h) == 0 {
			t.Fatalf("slot %d of hash %x is in bucket %d with hash %x, seen %x", slot, h, i, n.hash(), b.seen)
		}
	}
}

func indexSlots(x *index) []uint32 {
	var slots []uint32
	for i := range x.n {
		for slot := x.buckets.at(i).first; slot != none; slot = x.nodes.at(slot).next {
			slots = append(slots, slot)
		}
	}
	return slots
}

// A search in vain that walked a chain leaves no stale bit behind.
func TestIndexForgetsRemovedMessages(t *testing.T) {
	q, _ := open(t)
	var ids []string
	for i := range minBuckets * perBucket {
		ids = append(ids, fmt.Sprint("id ", i))
		mustPush(t, q, ids[i], time.Hour)
	}
	mustAll(t, q.Cancel(t.Context(), ids))
	for i := range 10_000 {
		q.ids.find(record.PackID(nil, fmt.Sprint("no id ", i)))
	}
	for i := range q.ids.n {
		if seen := q.ids.buckets.at(i).seen; seen != 0 {
			t.Errorf("bucket %d: %x", i, seen)
		}
	}
}
