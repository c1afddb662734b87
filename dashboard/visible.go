package dashboard

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible shows text of others without anything that changes how the text around it looks: control
// and formatting characters, such as those that reverse the direction of writing, and bytes that
// are no UTF-8 are written out. The templates escape HTML.
func visible(s string) string { return shown(s, "") }

// visibleLines is visible that keeps line breaks and tabs.
func visibleLines(s string) string { return shown(s, "\n\t") }

func shown(s, keep string) string {
	if clean(s, keep) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case hidden(r) && !strings.ContainsRune(keep, r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		i += size
	}
	return b.String()
}

func clean(s, keep string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return hidden(r) && !strings.ContainsRune(keep, r) })
}

func hidden(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co) || r == '\u034f' || r == '\u115f' || r == '\u3164'
}

// short cuts a text to n characters and makes it visible.
func short(s string, n int) string {
	cut := s
	if len(cut) > 4*n+4 { // bounds the work on megabytes
		cut = cut[:4*n+4]
		for !utf8.RuneStart(s[len(cut)]) && len(cut) > 4*n {
			cut = cut[:len(cut)-1]
		}
	}
	runes := []rune(visible(cut))
	if len(runes) > n {
		return string(runes[:n]) + "…"
	}
	if len(cut) < len(s) {
		return string(runes) + "…"
	}
	return string(runes)
}
