// Package record is how backends lay out a message's id and content in bytes.
package record

import "github.com/oklog/ulid/v2"

// A packed id is a length byte and the id. An id in the canonical form that package
// delayq makes is 16 bytes behind a zero instead of 26 behind a length.

const packedULID = 0

// PackID appends the packed form of an id of 1 to 255 bytes to dst.
func PackID(dst []byte, id string) []byte {
	if u, err := ulid.ParseStrict(id); err == nil && u.String() == id {
		return append(append(dst, packedULID), u[:]...)
	}
	return append(append(dst, byte(len(id))), id...)
}

// PackedID returns the packed id that b begins with, which must have been packed here.
func PackedID(b []byte) []byte {
	if b[0] == packedULID {
		return b[:1+len(ulid.ULID{})]
	}
	return b[:1+int(b[0])]
}

// IsPacked tells whether bytes are a packed id and nothing else.
func IsPacked(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	if b[0] == packedULID {
		return len(b) == 1+len(ulid.ULID{})
	}
	return len(b) == 1+int(b[0])
}

// UnpackID returns the id of a packed one.
func UnpackID(packed []byte) string {
	if packed[0] == packedULID {
		return ulid.ULID(packed[1:]).String()
	}
	return string(packed[1:])
}
