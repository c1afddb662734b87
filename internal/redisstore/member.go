package redisstore

import (
	"encoding/binary"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
)

// The token of a lease is what its member has beside the id, and when the lease was to end, by which a repeated ack knows whether
// anybody else may have had the message.
const (
	seqLen = 7
	genLen = 4
)

func memberOf(l backend.Lease) []byte {
	var buf [8]byte
	binary.BigEndian.PutUint64(buf[:], l.Token.Hi)
	m := append(make([]byte, 0, seqLen+genLen+len(l.ID)+1), buf[1:]...)
	m = binary.BigEndian.AppendUint32(m, uint32(l.Token.Lo))
	return record.PackID(m, l.ID)
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

// until puts the end of a lease into its token: what of its milliseconds has room, which is clear for 24 days around.
func until(t backend.Token, end time.Time) backend.Token {
	t.Lo |= uint64(uint32(end.UnixMilli())) << 32
	return t
}

// endOf is what until has put there.
func endOf(l backend.Lease) int64 { return int64(l.Token.Lo >> 32) }
