package memory

import (
	"bytes"
	"hash/maphash"

	"github.com/delayq/delayq/internal/record"
)

// An index finds a message's slot by its packed id. It is a linear hash table
// (W. Litwin, 1980): it grows and shrinks one bucket at a time, so that no push ever
// waits for a rehash of everything, and costs 3 bytes a message beside the chains and
// hashes in the nodes. The hash is seeded, so that nobody can choose ids that collide.
type index struct {
	nodes   *slab
	arena   *arena
	seed    maphash.Seed
	buckets paged[bucket]
	n       uint32 // buckets in use
	low     uint32 // the power of two at or below n
	count   uint32
}

// A bucket is a chain of slots. A push looks for an id that is not there, and with
// millions of messages each node on its way is a cache miss: seen has a bit for the hashes
// in the chain, so that most such searches end here. It may have bits of slots that left.
type bucket struct {
	first uint32
	seen  uint32
}

const (
	minBuckets = 4
	perBucket  = 3 // mean length of a chain
)

func newIndex(nodes *slab, a *arena) *index {
	x := &index{nodes: nodes, arena: a, seed: maphash.MakeSeed(), n: minBuckets, low: minBuckets}
	x.buckets.grow(minBuckets)
	for b := range uint32(minBuckets) {
		*x.buckets.at(b) = bucket{first: none}
	}
	return x
}

// bucket returns where a hash belongs among the n buckets.
func (x *index) bucket(h uint32) *bucket {
	b := h & (2*x.low - 1)
	if b >= x.n {
		b &= x.low - 1
	}
	return x.buckets.at(b)
}

const hashBits = 64 - hashShift

// seenBit depends on the top bits of a hash: the lowest choose the bucket.
func seenBit(h uint32) uint32 { return 1 << (h >> (hashBits - 5)) }

func (x *index) hash(id []byte) uint32 {
	return uint32(maphash.Bytes(x.seed, id) >> hashShift)
}

func (x *index) id(n *node) []byte { return record.PackedID(x.arena.bytes(n.rec())) }

func (x *index) find(id []byte) (uint32, bool) {
	h := x.hash(id)
	b := x.bucket(h)
	if b.seen&seenBit(h) == 0 {
		return none, false
	}
	var seen uint32
	for slot := b.first; slot != none; {
		n := x.nodes.at(slot)
		if n.hash() == h && bytes.Equal(x.id(n), id) {
			return slot, true
		}
		seen |= seenBit(n.hash())
		slot = n.next
	}
	b.seen = seen
	return none, false
}

// add enters a slot whose id is not there yet.
func (x *index) add(slot uint32) {
	n := x.nodes.at(slot)
	n.setHash(x.hash(x.id(n)))
	x.link(slot)
	x.count++
	if x.count > perBucket*x.n {
		x.split()
	}
}

func (x *index) remove(slot uint32) {
	n := x.nodes.at(slot)
	link := &x.bucket(n.hash()).first
	for *link != slot {
		link = &x.nodes.at(*link).next
	}
	*link = n.next
	x.count--
	if x.n > minBuckets && x.count < perBucket*x.n/2 {
		x.merge()
	}
}

// link enters a slot into its bucket.
func (x *index) link(slot uint32) {
	n := x.nodes.at(slot)
	b := x.bucket(n.hash())
	n.next = b.first
	b.first = slot
	b.seen |= seenBit(n.hash())
}

// split adds a bucket and shares out the one that it takes from.
func (x *index) split() {
	from := x.n - x.low
	x.buckets.grow(x.n + 1)
	*x.buckets.at(x.n) = bucket{first: none}
	x.n++
	if x.n == 2*x.low {
		x.low = x.n
	}
	x.rehash(from)
}

// merge undoes the last split.
func (x *index) merge() {
	x.n--
	if x.n < x.low {
		x.low /= 2
	}
	x.rehash(x.n)
	x.buckets.shrink(x.n)
}

// rehash moves each slot of a bucket to where it belongs now.
func (x *index) rehash(i uint32) {
	b := x.buckets.at(i)
	slot := b.first
	*b = bucket{first: none}
	for slot != none {
		next := x.nodes.at(slot).next
		x.link(slot)
		slot = next
	}
}
