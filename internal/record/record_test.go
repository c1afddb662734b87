package record_test

import (
	"bytes"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/delayq/delayq/internal/record"
)

func TestIDsComeBack(t *testing.T) {
	t.Parallel()
	const made = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
	for _, id := range []string{
		"a", made, strings.ToLower(made), made + "x", "\x00", strings.Repeat("x", 255), made[:25] + "v", made[:25] + "I", made[:25],
		"8" + made[1:], // beyond 128 bits
		strings.Repeat("0", 26), "7" + strings.Repeat("Z", 25),
		"\x00" + made[10:], // 17 bytes that begin as a packed id does
	} {
		packed := record.PackID(nil, id)
		if got := record.UnpackID(packed); got != id {
			t.Errorf("%q came back as %q", id, got)
		}
		if got := record.PackedID(append(packed, "more"...)); !bytes.Equal(got, packed) {
			t.Errorf("%q: the packed id was found to be %q, it is %q", id, got, packed)
		}
	}
	if n := len(record.PackID(nil, made)); n != 17 {
		t.Errorf("an id that the library made takes %d bytes, want 17", n)
	}
}

// FuzzContent reads foreign bytes, which a store may hold: it must reject or understand them.
func FuzzContent(f *testing.F) {
	f.Add(record.AppendContent(nil, nil, nil))
	f.Add(record.AppendContent(nil, map[string]string{"k": "v", "": "\x00"}, []byte("body")))
	f.Add([]byte{})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, b []byte) {
		headers, body, err := record.Content(b)
		if err != nil {
			if !errors.Is(err, record.ErrCorrupt) {
				t.Fatalf("rejected with %v", err)
			}
			return
		}
		again := record.AppendContent(nil, headers, body)
		if len(again) != record.ContentSize(headers, body) {
			t.Fatalf("%d bytes, announced were %d", len(again), record.ContentSize(headers, body))
		}
		h, bd, err := record.Content(again)
		if err != nil || !maps.Equal(h, headers) || !bytes.Equal(bd, body) {
			t.Fatalf("%q %q came back as %q %q, %v", headers, body, h, bd, err)
		}
	})
}
