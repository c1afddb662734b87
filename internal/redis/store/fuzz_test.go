package store

import (
	"errors"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
)

// FuzzReplies parses bytes from Redis, where other programs may have written. Each value is parsed
// or rejected as corrupt, and a parsed lease is written with the same bytes.
func FuzzReplies(f *testing.F) {
	lease := backend.Lease{ID: "order-17", Token: backend.Token{Hi: 1, Lo: 2}}
	f.Add(string(appendMember(nil, lease)), string(record.AppendContent(nil, map[string]string{"k": "v"}, []byte("body"))), string(make([]byte, deathLen)), "1")
	f.Add("0123456789a\x00short", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "", "")
	f.Add("0123456789a\x00", "", "\x00", "x")
	f.Add("0123456789a\x01", "\x00", "\xff\xff\xff\xff\xff\xff\xff\xff", "99999999999999999999")
	f.Add("", "", "", "")
	f.Fuzz(func(t *testing.T, member, content, other, number string) {
		if l, err := leaseOf(member); err == nil && (l.ID == "" || string(appendMember(nil, l)) != member) {
			t.Fatalf("%q is the lease %+v", member, l)
		}
		_, _, err := parseClaim([]any{number, number, number, member, content, number + " " + number})
		mustBeCorrupt(t, err)
		_, err = parsePending([]any{number, member, other, content}, 0)
		mustBeCorrupt(t, err)
		if l, ok := parseLetter([]any{number, member, content, other}); ok && l.ID == "" {
			t.Fatalf("%q is the dead letter %+v", member, l)
		}
		b := bid{member: member, until: time.Unix(1, 0)}
		_, err = b.delivery(content, other)
		mustBeCorrupt(t, err)
		if _, _, err := placeOf(number); err != nil && !errors.Is(err, backend.ErrInvalid) {
			t.Fatal(err)
		}
	})
}

func mustBeCorrupt(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, record.ErrCorrupt) {
		t.Fatalf("rejected with %v", err)
	}
}
