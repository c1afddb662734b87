package main

import (
	"strings"
	"testing"
)

func TestExcerpt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ body, want string }{
		{"", `""`},
		{"order 17", `"order 17"`},
		{"two\nlines", `"two\nlines"`},
		{`{"total":12}`, "`{\"total\":12}`"},
		{"\"a\"\x1b[31mred", `"\"a\"\x1b[31mred"`},
		{"\xff\xfe", "fffe (2 bytes)"},
		{"\x00\x01", "0001 (2 bytes)"},
		{"\xff", "ff (1 byte)"},
		{strings.Repeat("x", 38), `"` + strings.Repeat("x", 38) + `"`},
		{strings.Repeat("x", 39), `"` + strings.Repeat("x", 26) + `"… (39 bytes)`},
		{strings.Repeat("单", 20), `"` + strings.Repeat("单", 13) + `"… (60 bytes)`},
		{strings.Repeat("text\x00", 20), `"text\x00text\x00text\x00t"… (100 bytes)`},
		{strings.Repeat(`""""`, 20), "`" + strings.Repeat(`"`, 26) + "`… (80 bytes)"},
		{strings.Repeat("\xff", 60), strings.Repeat("ff", 14) + "… (60 bytes)"},
	} {
		got := excerpt([]byte(tt.body), 40)
		if got != tt.want || width(got) > 40 {
			t.Errorf("%q: got %s (%d columns), want %s", tt.body, got, width(got), tt.want)
		}
	}
}

func TestFolded(t *testing.T) {
	t.Parallel()
	const text = "the length is cut off, too large, or longer than needed"
	lines := folded(text, 20)
	for _, line := range lines {
		if width(line) > 20 {
			t.Errorf("%q is longer than 20", line)
		}
	}
	if got := strings.Join(lines, " "); got != text || len(lines) != 3 {
		t.Errorf("got %q", lines)
	}
}

func TestPrintable(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"orders:订单": "orders:订单", "a\x1b[2J": `"a\x1b[2J"`, "\xff": `"\xff"`} {
		if got := printable(name); got != want {
			t.Errorf("%q: got %s, want %s", name, got, want)
		}
	}
}
