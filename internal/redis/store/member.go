package store

import (
	"encoding/binary"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
)

// The token of a lease is its member without the id, and the first end of the lease. By that end a
// repeated ack knows whether another worker may have had the message. It also distinguishes a lease
// that a rolled-back server has forgotten from a later lease with the same member.
const (
	seqLen = 7
	genLen = 4
	endLen = 4
)

// tokenOf is a token as scripts take it: the end, then the member.
func tokenOf(l backend.Lease) []byte {
	t := make([]byte, 0, endLen+seqLen+genLen+len(l.ID)+1)
	return appendMember(binary.BigEndian.AppendUint32(t, uint32(l.Token.Lo>>32)), l)
}

func appendMember(to []byte, l backend.Lease) []byte {
	var buf [8]byte
	binary.BigEndian.PutUint64(buf[:], l.Token.Hi)
	to = append(to, buf[1:]...)
	to = binary.BigEndian.AppendUint32(to, uint32(l.Token.Lo))
	return record.PackID(to, l.ID)
}

func leaseOf(member string) (backend.Lease, error) {
	if len(member) < seqLen+genLen || !record.IsPacked([]byte(member[seqLen+genLen:])) {
		return backend.Lease{}, record.ErrCorrupt
	}
	var buf [8]byte
	copy(buf[1:], member[:seqLen])
	return backend.Lease{
		ID: record.UnpackID([]byte(member[seqLen+genLen:])),
		Token: backend.Token{
			Hi: binary.BigEndian.Uint64(buf[:]),
			Lo: uint64(binary.BigEndian.Uint32([]byte(member[seqLen:]))),
		},
	}, nil
}

// until puts the end of a lease into its token: the lower 4 bytes of its milliseconds, which are
// unambiguous within 24 days.
func until(t backend.Token, end time.Time) backend.Token {
	t.Lo |= uint64(uint32(end.UnixMilli())) << 32
	return t
}
