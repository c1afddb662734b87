package redisson_test

import (
	"strings"
	"testing"

	"github.com/delayq/delayq/redisson"
)

// The vectors have more.
func TestMarshallingString(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ body, header, chars string }{
		{strings.Repeat("x", 257), "04 3f 0101", strings.Repeat("x", 257)},
		{strings.Repeat("中", 256), "04 3e 00", strings.Repeat("中", 256)},
		{strings.Repeat("😀", 128), "04 3e 00", strings.Repeat("\xed\xa0\xbd\xed\xb8\x80", 128)},
		{strings.Repeat("x", 65536), "04 3f 0000", strings.Repeat("x", 65536)},
	} {
		check(t, redisson.MarshallingString, tt.body, string(fromHex(t, tt.header))+tt.chars)
	}
}

func TestMarshallingStringRejects(t *testing.T) {
	t.Parallel()
	for name, payload := range map[string]string{
		"nothing":                   "",
		"the version alone":         "04",
		"version 3":                 "03 3e 01 41",
		"plain text":                "68656c6c6f",
		"null":                      "04 01",
		"an int":                    "04 4b 00000001",
		"a byte[]":                  "04 42 03 21 010203",
		"an empty byte[]":           "04 41 21",
		"no length":                 "04 3e",
		"half a length":             "04 3f 00",
		"no characters":             "04 3e 01",
		"a character short":         "04 3e 05 68656c6c",
		"a character more":          "04 3e 05 68656c6c6f6f",
		"more behind an empty one":  "04 3d 00",
		"bytes for characters":      "04 3e 06 e4b8ade69687",
		"zero in four bytes":        "04 40 00000000",
		"a negative length":         "04 40 ffffffff 41",
		"one in two bytes":          "04 3f 0001 41",
		"one in four bytes":         "04 40 00000001 41",
		"NUL as it is":              "04 3e 01 00",
		"an overlong letter":        "04 3e 01 c181",
		"four bytes for two":        "04 3e 02 f09f9880",
		"four bytes for one":        "04 3e 01 f09f9880",
		"four bytes beside one":     "04 3e 02 f09f9880 41",
		"an end cut off":            "04 3e 02 41c3",
		"a lone following byte":     "04 3e 01 80",
		"256 in two bytes":          "04 3f 0100" + strings.Repeat("41", 256),
		"256 announced, 255 there":  "04 3e 00" + strings.Repeat("41", 255),
		"a second object behind it": "04 3e 01 41 3e 01 41",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, redisson.MarshallingString, fromHex(t, payload))
		})
	}
}
