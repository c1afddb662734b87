package wire

import (
	"encoding/base64"
	"encoding/binary"

	"github.com/delayq/delayq/backend"
)

// A lease as text has all that settles a delivery. So a server that has just been started can settle
// what an earlier one has handed out, where the store keeps the leases.
const (
	leaseVersion = 1
	tokenBytes   = 16
)

// Lease returns a lease as text.
func Lease(l backend.Lease) string {
	raw := make([]byte, 0, 1+tokenBytes+len(l.ID))
	raw = append(raw, leaseVersion)
	raw = binary.BigEndian.AppendUint64(raw, l.Token.Hi)
	raw = binary.BigEndian.AppendUint64(raw, l.Token.Lo)
	return base64.RawURLEncoding.EncodeToString(append(raw, l.ID...))
}

// ReadLease is the inverse of Lease.
func ReadLease(text string) (backend.Lease, error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) <= 1+tokenBytes || raw[0] != leaseVersion {
		return backend.Lease{}, backend.Invalid("lease", text, "the lease of a message that was received")
	}
	return backend.Lease{
		ID: string(raw[1+tokenBytes:]),
		Token: backend.Token{
			Hi: binary.BigEndian.Uint64(raw[1:]),
			Lo: binary.BigEndian.Uint64(raw[1+tokenBytes/2:]),
		},
	}, nil
}
