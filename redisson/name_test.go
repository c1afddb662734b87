package redisson

import (
	"strings"
	"testing"
)

// Redisson 3.16.8 and 4.7.0 fail on a Cluster with the names that are false here, at the offer.
func TestSlotsOfAQueue(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"a": true, "orders:delay": true, "my queue": true, "{a}": true, "a{b}c": true, "a}{b}": true, "{a}{b}": true,
		"a{": false, "a{b": false, "a{}b": false, "a}b": false,
	} {
		if got := sameSlot(namesOf(name).keys()...); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}

// The slots are those that CLUSTER KEYSLOT of Redis 7.0.15 gives.
func TestSlot(t *testing.T) {
	t.Parallel()
	if got := crc16("123456789"); got != 0x31c3 {
		t.Errorf("check value %04x, want 31c3", got)
	}
	for key, want := range keySlots {
		if got := slot(key); got != want {
			t.Errorf("%q: slot %d, want %d", key, got, want)
		}
	}
}

var keySlots = map[string]uint16{
	"":                                    0,
	"a":                                   15495,
	"foo":                                 12182,
	"123456789":                           12739,
	"{user1000}.following":                3443,
	"user1000":                            3443,
	"foo{}{bar}":                          8363,
	"foo{{bar}}zap":                       4015,
	"{bar":                                4015,
	"foo{bar}{zap}":                       5061,
	"a{":                                  14311,
	"a{b":                                 13340,
	"a{}b":                                13694,
	"a}b":                                 7866,
	"a}{b}":                               3300,
	"}{":                                  12793,
	"{}":                                  15257,
	"{}{a}":                               13650,
	"中文":                                  13257,
	"\x00x":                               16287,
	"redisson_delay_queue:{orders:delay}": 5324,
	"redisson_delay_queue_timeout:{a}b}":  15495,
	strings.Repeat("x", 200):              9756,
}
