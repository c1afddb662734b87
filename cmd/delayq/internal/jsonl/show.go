package jsonl

import (
	"strconv"
	"strings"
	"unicode"
)

const mostRunes = 60

// Shown makes text from a file or a store harmless to a terminal, and short.
func Shown(s string) string {
	short, more := firstRunes(s, mostRunes)
	if strings.IndexFunc(short, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) >= 0 {
		short = strconv.Quote(short)
	}
	if more {
		short += "…"
	}
	return short
}

func firstRunes(s string, n int) (first string, more bool) {
	for i := range s {
		if n == 0 {
			return s[:i], true
		}
		n--
	}
	return s, false
}
