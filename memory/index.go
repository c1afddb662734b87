package memory

import (
	"bytes"
	"hash/maphash"
)

// An index finds a message's slot by its packed id. It is a linear hash table
// (W. Litwin, 1980): it grows and shrinks one bucket at a time, so that no push ever
// waits for a rehash of everything, and costs 2 bytes a message beside the chain in
// the nodes. The hash is seeded, so that nobody can choose ids that collide.
type index struct {
	nodes *slab
	arena *arena
	seed  maphash.Seed
	heads paged[uint32]
	n     uint32 // buckets in use
	low   uint32 // the power of two at or below n
	count uint32
}

const (
	minBuckets = 4
	perBucket  = 2 // mean length of a chain
)

func newIndex(nodes *slab, a *arena) *index {
	x := &index{nodes: nodes, arena: a, seed: maphash.MakeSeed(), n: minBuckets, low: minBuckets}
	x.heads.grow(minBuckets)
	for b := range uint32(minBuckets) {
		*x.heads.at(b) = none
	}
	return x
}

// bucket returns where an id belongs among the n buckets.
func (x *index) bucket(id []byte) uint32 {
	h := uint32(maphash.Bytes(x.seed, id))
	if b := h & (2*x.low - 1); b < x.n {
		return b
	}
	return h & (x.low - 1)
}

func (x *index) id(slot uint32) []byte { return packedID(x.arena.bytes(x.nodes.at(slot).rec)) }

func (x *index) find(id []byte) (uint32, bool) {
	for slot := *x.heads.at(x.bucket(id)); slot != none; slot = x.nodes.at(slot).next {
		if bytes.Equal(x.id(slot), id) {
			return slot, true
		}
	}
	return none, false
}

// add enters a slot whose id is not there yet.
func (x *index) add(slot uint32) {
	x.link(x.bucket(x.id(slot)), slot)
	x.count++
	if x.count > perBucket*x.n {
		x.split()
	}
}

// remove takes a slot out; its record must still be readable.
func (x *index) remove(slot uint32) {
	link := x.heads.at(x.bucket(x.id(slot)))
	for *link != slot {
		link = &x.nodes.at(*link).next
	}
	*link = x.nodes.at(slot).next
	x.count--
	if x.n > minBuckets && x.count < perBucket*x.n/2 {
		x.merge()
	}
}

func (x *index) link(bucket, slot uint32) {
	head := x.heads.at(bucket)
	x.nodes.at(slot).next = *head
	*head = slot
}

// split adds a bucket and shares out the one that it takes from.
func (x *index) split() {
	from := x.n - x.low
	x.heads.grow(x.n + 1)
	*x.heads.at(x.n) = none
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
	x.heads.shrink(x.n)
}

// rehash moves each slot of a bucket to where it belongs now.
func (x *index) rehash(bucket uint32) {
	slot := *x.heads.at(bucket)
	*x.heads.at(bucket) = none
	for slot != none {
		next := x.nodes.at(slot).next
		x.link(x.bucket(x.id(slot)), slot)
		slot = next
	}
}
