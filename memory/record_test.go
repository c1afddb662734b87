package memory

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/delayq/delayq/internal/record"
)

func TestRecordRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := drawID(t)
		headers := rapid.MapOfN(rapid.String(), rapid.String(), 0, 5).Draw(t, "headers")
		body := rapid.SliceOf(rapid.Byte()).Draw(t, "body")
		gotID, gotHeaders, gotBody := roundTrip(id, headers, body)
		if gotID != id || !maps.Equal(gotHeaders, headers) || !bytes.Equal(gotBody, body) {
			t.Fatalf("got %q %q %q", gotID, gotHeaders, gotBody)
		}
		if len(headers) == 0 && gotHeaders != nil {
			t.Fatalf("headers out of nothing: %v", gotHeaders)
		}
	})
}

const canonical = "01J9Z3B7W5Q8XKMN4RTVYHDC6E"

// drawID returns ids that are a ULID, nearly one, or nothing like one.
func drawID(t *rapid.T) string {
	return rapid.OneOf(
		rapid.StringMatching(`[0-7][0-9A-HJKMNP-TV-Z]{25}`),
		rapid.StringMatching(`[0-9A-Za-z]{26}`),
		rapid.StringN(1, -1, 255),
		rapid.SampledFrom(nearlyULIDs()),
	).Draw(t, "id")
}

// nearlyULIDs parse as a ULID or resemble one, and must not come back as another id.
func nearlyULIDs() []string {
	return []string{
		canonical,
		strings.ToLower(canonical),
		canonical[:25] + "e",
		"8" + canonical[1:], // beyond 128 bits
		canonical[:25] + "I",
		canonical[:25],
		canonical + "0",
		strings.Repeat("0", 26),
		"7" + strings.Repeat("Z", 25),
		"\x00" + canonical[10:], // 17 bytes that begin as a packed one does
		strings.Repeat("x", 255),
		"\x00",
	}
}

func roundTrip(id string, headers map[string]string, body []byte) (string, map[string]string, []byte) {
	packed := record.PackID(nil, id)
	rec := make([]byte, recordSize(packed, headers, body))
	putRecord(rec, packed, headers, body)
	return getRecord(rec)
}

func TestNearlyULIDsStayAsTheyAre(t *testing.T) {
	for _, id := range nearlyULIDs() {
		packed := record.PackID(nil, id)
		if got := record.UnpackID(packed); got != id {
			t.Errorf("%q came back as %q", id, got)
		}
		if long := slices.Concat(packed, []byte("what follows")); !bytes.Equal(record.PackedID(long), packed) {
			t.Errorf("%q: a record begins with %q, want %q", id, record.PackedID(long), packed)
		}
	}
	if n := len(record.PackID(nil, canonical)); n != 17 {
		t.Errorf("a canonical ULID takes %d bytes", n)
	}
}

// FuzzRecord checks that a record returns the original message, whatever bytes surround the cell,
// and fills exactly the size that it asked for.
func FuzzRecord(f *testing.F) {
	for _, id := range nearlyULIDs() {
		f.Add(id, "key", "value", []byte("body"))
	}
	f.Add("id", "", "", []byte{})
	f.Add("id", strings.Repeat("k", 128), strings.Repeat("v", 20_000), make([]byte, 70_000))
	f.Fuzz(func(t *testing.T, id, key, value string, body []byte) {
		if id == "" || len(id) > 255 {
			t.Skip("no message has such an id")
		}
		headers := map[string]string{key: value}
		low, high := inCell(0x00, id, headers, body), inCell(0xFF, id, headers, body)
		if !bytes.Equal(low, high) {
			t.Fatal("a part of the record was not written")
		}
		gotID, gotHeaders, gotBody := getRecord(append(low, 0xFF))
		if gotID != id || !maps.Equal(gotHeaders, headers) || !bytes.Equal(gotBody, body) {
			t.Fatalf("got %q %q %q", gotID, gotHeaders, gotBody)
		}
	})
}

// inCell returns a record that was put where other bytes lay.
func inCell(before byte, id string, headers map[string]string, body []byte) []byte {
	packed := record.PackID(nil, id)
	rec := bytes.Repeat([]byte{before}, recordSize(packed, headers, body))
	putRecord(rec, packed, headers, body)
	return rec
}
