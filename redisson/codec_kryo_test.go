package redisson_test

import (
	"strings"
	"testing"

	"github.com/delayq/delayq/redisson"
)

// The vectors have more.
func TestKryo5String(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ body, header, chars string }{
		{"\x7f", "03 82", "\x7f"},
		{"\x00", "03 82", "\x00"},
		{"a\x00", "03", "a\x80"},
		{strings.Repeat("x", 32), "03", strings.Repeat("x", 31) + "\xf8"},
		{strings.Repeat("x", 63), "03 c001", strings.Repeat("x", 63)},
		{strings.Repeat("x", 1<<20-2), "03 ffff7f", strings.Repeat("x", 1<<20-2)},
		{strings.Repeat("x", 1<<20-1), "03 c0808001", strings.Repeat("x", 1<<20-1)},
		{"éa", "03 83", "éa"},
	} {
		check(t, redisson.Kryo5String, tt.body, string(fromHex(t, tt.header))+tt.chars)
	}
}

// Kryo reads the general form of short ASCII, too.
func TestKryo5StringReadsTheGeneralForm(t *testing.T) {
	t.Parallel()
	reads(t, redisson.Kryo5String, "\x03\x86hello", "hello")
	reads(t, redisson.Kryo5String, "\x03\xa1"+strings.Repeat("x", 32), strings.Repeat("x", 32))
}

// The byte that useReferences puts in front is a character like any other.
func TestKryo5StringTakesAReferenceForACharacter(t *testing.T) {
	t.Parallel()
	check(t, redisson.Kryo5String, "\x01hello", "\x03\x01hell\xef")
}

func TestKryo5StringRejects(t *testing.T) {
	t.Parallel()
	for name, payload := range map[string]string{
		"nothing":                    "",
		"null":                       "00",
		"a null string":              "03 80",
		"the class alone":            "03",
		"plain text":                 "68656c6c6f",
		"an int":                     "02 02",
		"a byte[]":                   "01005bc204010203",
		"a boolean":                  "05 01",
		"a class id in two bytes":    "8301 68656c6cef",
		"a short one without an end": "03 68656c6c6f",
		"more behind a short one":    "03 68656c6cef 00",
		"a flag within a short one":  "03 68e56c6cef",
		"a short one of 33":          "03" + strings.Repeat("41", 32) + "c1",
		"no characters":              "03 82",
		"a character short":          "03 86 68656c6c",
		"a character more":           "03 86 68656c6c6f6f",
		"more behind an empty one":   "03 81 00",
		"bytes for characters":       "03 87 e4b8ade69687",
		"a length cut off":           "03 c0",
		"a length in one byte more":  "03 c200 41",
		"a length of six bytes":      "03 c08080808001",
		"a length of 12 bytes":       "03 c280808080808080808080 01 41",
		"a negative length":          "03 ffffffff3f 41",
		"a huge length":              "03 ffffffff0f 41",
		"NUL in two bytes":           "03 82 c080",
		"an overlong letter":         "03 82 c181",
		"four bytes for two":         "03 83 f09f9880",
		"four bytes beside one":      "03 83 f09f9880 41",
		"an end cut off":             "03 83 41c3",
		"a reference, then a count":  "03 01 82 41",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, redisson.Kryo5String, fromHex(t, payload))
		})
	}
}
