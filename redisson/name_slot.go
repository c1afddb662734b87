package redisson

import "strings"

const slots = 16384

// sameSlot reports whether a script may take all these keys on a Cluster. A name
// with braces that make no hash tag gives keys in different slots: "a{", "a}b", "a{}b".
func sameSlot(keys ...string) bool {
	for _, k := range keys {
		if slot(k) != slot(keys[0]) {
			return false
		}
	}
	return true
}

// slot is where a Cluster keeps a key.
func slot(key string) uint16 { return crc16(hashTag(key)) % slots }

// hashTag is the text between the first opening brace and the first closing one
// behind it, or all of the key if that is nothing.
func hashTag(key string) string {
	_, tag, open := strings.Cut(key, "{")
	tag, _, closed := strings.Cut(tag, "}")
	if !open || !closed || tag == "" {
		return key
	}
	return tag
}

// crc16 is the variant of XMODEM: polynomial 1021, from zero, the high bit first.
func crc16(s string) uint16 {
	var crc uint16
	for i := range len(s) {
		crc ^= uint16(s[i]) << 8
		for range 8 {
			carry := crc >> 15
			crc = crc<<1 ^ carry*0x1021
		}
	}
	return crc
}
