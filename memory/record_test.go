package memory

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"github.com/delayq/delayq/internal/record"
)

// FuzzRecord checks that a record returns the original message, whatever bytes surround the cell,
// and fills exactly the size that it asked for.
func FuzzRecord(f *testing.F) {
	f.Add("01J9Z3B7W5Q8XKMN4RTVYHDC6E", "key", "value", []byte("body"))
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
