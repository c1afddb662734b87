package redisson

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// MemberFormat is a layout of members, as an entry of the zset and the index list is called
// here: an id, the payload's length as 8 bytes, little-endian, and the payload. A release
// of Redisson reads its own layout only, and stumbles over the other one at every
// transfer, so all writers of a queue have to write the same.
type MemberFormat int

// The layouts. V2 is the zero value, and [New] writes Both unless [Format] says otherwise.
const (
	// V2 is the layout of Redisson 3.21.1 and newer: the byte 08, 8 random bytes,
	// length, payload. Its readers take the first byte for the id's length, so ids
	// of 1 to 255 bytes are understood.
	V2 MemberFormat = iota

	// V1 is the layout up to Redisson 3.21.0: 8 random bytes, length, payload.
	V1

	// Both is a member of V1 whose id begins with 07. To a reader of V2 that is an
	// id of seven bytes, so releases of either side find the same payload.
	Both
)

// String returns "V2", "V1" or "Both".
func (f MemberFormat) String() string {
	switch f {
	case V2:
		return "V2"
	case V1:
		return "V1"
	case Both:
		return "Both"
	default:
		return fmt.Sprintf("MemberFormat(%d)", int(f))
	}
}

const (
	idLen  = 8
	lenLen = 8
)

// Member is the entry of the zset and of the index list for one message.
type Member struct {
	Format MemberFormat

	// ID is the id without the byte in front of it that V2 writes for its length:
	// 8 bytes, the first one 07 in Both; in V2 1 to 255 bytes are read.
	ID []byte

	// Payload is the encoded body, as it goes to the destination list.
	Payload []byte
}

// ParseMember finds out the layout of b and takes it apart. The member shares no memory
// with b, and [Member.Append] gives the same bytes again. Its error is an [UnreadableError].
//
// The length has to fit exactly, which leaves one member that both layouts explain: V1 with
// an id that begins with 08 and the payload 00 is, byte for byte, V2 with an empty
// payload, and is taken for that. An id of V2 that is not 8 bytes long, which Redisson never
// writes, comes last: such a member is V1 where that fits too.
func ParseMember(b []byte) (Member, error) {
	switch {
	case len(b) > 0 && b[0] == idLen && fits(b, 1+idLen):
		return cutMember(V2, b, 1, 1+idLen), nil
	case fits(b, idLen) && b[0] == idLen-1:
		return cutMember(Both, b, 0, idLen), nil
	case fits(b, idLen):
		return cutMember(V1, b, 0, idLen), nil
	case len(b) > 0 && b[0] > 0 && fits(b, 1+int(b[0])):
		return cutMember(V2, b, 1, 1+int(b[0])), nil
	default:
		return Member{}, unreadable("member", "it has no layout of Redisson's", b)
	}
}

// fits reports whether the length at an offset is the number of bytes that follow.
func fits(b []byte, at int) bool {
	rest := len(b) - at - lenLen
	return rest >= 0 && binary.LittleEndian.Uint64(b[at:]) == uint64(rest)
}

func cutMember(f MemberFormat, b []byte, from, to int) Member {
	b = bytes.Clone(b)
	return Member{Format: f, ID: b[from:to:to], Payload: b[to+lenLen:]}
}

// Append appends the member in its layout to dst. It panics if the layout has no room for
// the id, since a member that cannot be read holds up all of the queue.
func (m Member) Append(dst []byte) []byte {
	m.mustFit()
	if m.Format == V2 {
		dst = append(dst, byte(len(m.ID)))
	}
	dst = append(dst, m.ID...)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(len(m.Payload)))
	return append(dst, m.Payload...)
}

// Bytes returns the member in its layout, as [Member.Append] does.
func (m Member) Bytes() []byte {
	return m.Append(make([]byte, 0, 1+len(m.ID)+lenLen+len(m.Payload)))
}

func (m Member) mustFit() {
	n, ok := len(m.ID), false
	switch m.Format {
	case V2:
		ok = n >= 1 && n <= 255
	case V1:
		ok = n == idLen
	case Both:
		ok = n == idLen && m.ID[0] == idLen-1
	}
	if !ok {
		panic(fmt.Sprintf("redisson: a member of the layout %v cannot have the id %x", m.Format, m.ID))
	}
}
