package jsonl

import (
	"bytes"
	"strings"
	"testing"
	"testing/iotest"
)

// FuzzLines reads lines however they arrive, none longer than the limit, and goes on behind those
// that are.
func FuzzLines(f *testing.F) {
	for _, seed := range []string{"", "\n", "{}\n{}", "a\r\nb\r\n", "\xef\xbb\xbf{}\n", "\x00\n\xff\n", strings.Repeat("x", 200) + "\nshort\n", "a\rb\n\r\n", strings.Repeat("x", 65), strings.Repeat("x", 65) + "\n"} {
		f.Add([]byte(seed))
	}
	const limit = 64
	f.Fuzz(func(t *testing.T, text []byte) {
		whole, single := NewReader(bytes.NewReader(text), limit), NewReader(iotest.OneByteReader(bytes.NewReader(text)), limit)
		for whole.Next() {
			if !single.Next() {
				t.Fatalf("%q ends before line %d when it comes byte by byte", text, whole.Number)
			}
			a, aErr := whole.Text()
			b, bErr := single.Text()
			if !bytes.Equal(a, b) || (aErr == nil) != (bErr == nil) || whole.Number != single.Number {
				t.Fatalf("line %d is %q, %v, and %q, %v when it comes byte by byte", whole.Number, a, aErr, b, bErr)
			}
			if len(a) > limit || cap(whole.text) > 8*limit+len(text) {
				t.Fatalf("line %d has %d bytes in %d", whole.Number, len(a), cap(whole.text))
			}
		}
		if single.Next() || whole.Err != nil || whole.Number > bytes.Count(text, []byte("\n"))+1 {
			t.Fatalf("%d lines in %q, error %v", whole.Number, text, whole.Err)
		}
	})
}
