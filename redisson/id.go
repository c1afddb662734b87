package redisson

import (
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/delayq/delayq/internal/record"
)

// The id of a message that Java can see is its member's id in hex, with the length byte where there
// is one, and the due time that it was pushed with, in ms: that finds the member among millions. In
// an envelope it is the pusher's.

// identity names a message in the scripts.
type identity struct {
	key    []byte
	origin int64 // unused in envelopes
}

func (s *store) identify(id string) (identity, bool) {
	if s.envelopes() {
		return identity{key: record.PackID(nil, id)}, true
	}
	key, origin, ok := strings.Cut(id, "-")
	ms, err := strconv.ParseInt(origin, 10, 64)
	raw, hexErr := hex.DecodeString(key)
	return identity{raw, ms}, ok && err == nil && hexErr == nil && len(raw) >= 2
}

// id is the other way round.
func (s *store) id(key string, origin int64) string {
	if s.envelopes() {
		return unpacked(key)
	}
	return hex.EncodeToString([]byte(key)) + "-" + strconv.FormatInt(origin, 10)
}

// unpacked returns the id in a packed one, or "" for other bytes, which another program may have
// written.
func unpacked(key string) string {
	if len(key) < 2 || len(key) != packedLen(key[0]) {
		return ""
	}
	return record.UnpackID([]byte(key))
}

// MemberID returns the id of a waiting message in a queue shared with Java, to cancel or to move a
// message that Java has pushed. member is an entry of the sorted set of due times, and due its
// score. Its error is an [UnreadableError].
func MemberID(member []byte, due time.Time) (string, error) {
	m, err := ParseMember(member)
	if err != nil {
		return "", err
	}
	key := member[:len(member)-len(m.Payload)-lenLen]
	return hex.EncodeToString(key) + "-" + strconv.FormatInt(due.UnixMilli(), 10), nil
}
