package backend_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/delayq/delayq/backend"
)

// FuzzMux opens any text as a URL. An opener gets only URLs that can be parsed, and no error of the
// mux shows the part behind the scheme.
func FuzzMux(f *testing.F) {
	const token = "Zq7tokenqZ"
	for _, seed := range [][2]string{
		{"known://me:", "@host/q"}, {"unknown://me:", "@host/q"}, {"://", ""}, {"", ""}, {"known://me:%", "@h/q"}, {"known:", "@h/q"},
		{"known://[", "]/q"}, {"\x00://", ""}, {" known://", ""}, {"KNOWN://me:", "@h"}, {"unknown://me:x\x7f", "@h/q"}, {"//me:", "@h/q"},
	} {
		f.Add(seed[0], seed[1])
	}
	var m backend.Mux
	opened := errors.New("opened")
	m.Register("known", func(_ context.Context, u *url.URL) (backend.Backend, string, error) {
		if u.Scheme != "known" {
			panic("another scheme's URL")
		}
		return nil, "", opened
	})
	f.Fuzz(func(t *testing.T, before, after string) {
		_, _, err := m.Open(t.Context(), before+token+after)
		switch {
		case errors.Is(err, opened):
		case !errors.Is(err, backend.ErrInvalid) && !errors.Is(err, backend.ErrUnknownScheme):
			t.Fatalf("answered with %v", err)
		case strings.Contains(before, ":") && strings.Contains(strings.ToLower(err.Error()), strings.ToLower(token)):
			t.Fatalf("%q…: %v", before, err)
		}
	})
}

// FuzzInvalid shows any value: in one line of printable text, and cut.
func FuzzInvalid(f *testing.F) {
	for _, seed := range []string{"", "a", "\x1b[2J\r\n", "\xff\x00", strings.Repeat("é", 1000), "\u202e"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		text := backend.Invalid("name", value, "another").Error()
		if len(text) > 400 || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			t.Fatalf("%q is shown as %q", value, text)
		}
	})
}
