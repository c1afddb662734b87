package shard

import (
	"math/bits"
	"strconv"

	"github.com/delayq/delayq/backend"
)

// Most is the largest number of shards.
const Most = 256

// Valid returns the error of a number of shards that a queue cannot have. The option's name is for the
// error.
func Valid(option string, n int) error {
	if n < 1 || n > Most || bits.OnesCount(uint(n)) != 1 {
		return backend.Invalid(option, n, "a power of two from 1 to "+strconv.Itoa(Most))
	}
	return nil
}

// slots is the number of slots of a Cluster.
const slots = 16384

// Tags returns the hash tags of a queue's shards. Each is in another n-th of the slots: masters that
// have the same number of slots next to each other have the same number of shards, give or take one.
// The queue's name cannot have a slash.
func Tags(queue string, n int) []string {
	tags := make([]string, n)
	for k := range tags {
		begin := queue + "/" + strconv.Itoa(n) + "." + strconv.Itoa(k) + "."
		for try := 0; ; try++ {
			tags[k] = begin + strconv.Itoa(try)
			if slotOf(tags[k]) == k*slots/n+slotOf(tags[k])%(slots/n) {
				break
			}
		}
	}
	return tags
}

// slotOf returns the slot of a hash tag: its CRC-16, as the specification of Redis Cluster defines it
// (polynomial 0x1021, no reflection, from 0).
func slotOf(tag string) int {
	crc := uint16(0)
	for i := range len(tag) {
		crc ^= uint16(tag[i]) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= 0x1021
			}
		}
	}
	return int(crc) % slots
}

// of returns the shard of an id among n, a power of two. It is FNV-1a, whose bits are mixed once more
// (the finalizer of MurmurHash3): of ids that differ in one digit FNV-1a alone differs in few bits.
func of(id string, n int) int {
	h := uint64(14695981039346656037)
	for i := range len(id) {
		h = (h ^ uint64(id[i])) * 1099511628211
	}
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	return int(h & uint64(n-1))
}
