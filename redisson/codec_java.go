package redisson

import (
	"bytes"
	"fmt"

	"unicode/utf16"
	"unicode/utf8"

	"github.com/delayq/delayq/backend"
)

// A Java string is UTF-16 units. A body is its UTF-8, with three bytes for a lone surrogate. Every
// string has one form only: two halves of a pair as three bytes each are rejected.

func isHigh(r rune) bool { return r >= 0xd800 && r < 0xdc00 }
func isLow(r rune) bool  { return r >= 0xdc00 && r < 0xe000 }

// point decodes the code point that b begins with, which may be a surrogate. Its size is 0 if there
// is none.
func point(b []byte) (r rune, size int) {
	r, size = utf8.DecodeRune(b)
	if r != utf8.RuneError || size != 1 {
		return r, size
	}
	if len(b) >= 3 && b[0] == 0xed && b[1]&0xe0 == 0xa0 && b[2]&0xc0 == 0x80 {
		return 0xd000 | rune(b[1]&0x3f)<<6 | rune(b[2]&0x3f), 3
	}
	return 0, 0
}

func appendPoint(dst []byte, r rune) []byte {
	if isHigh(r) || isLow(r) {
		return append(dst, 0xed, 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
	}
	return utf8.AppendRune(dst, r)
}

// units counts the UTF-16 units of a body.
func units(body []byte) (n uint64, err error) {
	var last rune
	for b := body; len(b) > 0; {
		r, size := point(b)
		if size == 0 || isHigh(last) && isLow(r) {
			return 0, backend.Invalid("body", string(body), "UTF-8, with three bytes for a lone surrogate; the codec bytes takes all")
		}
		n += unitsOf(r)
		last, b = r, b[size:]
	}
	return n, nil
}

func unitsOf(r rune) uint64 {
	if r > 0xffff {
		return 2
	}
	return 1
}

// appendUnits appends a body unit by unit, the halves of a pair apart, as Java's serializers do.
// They differ in their bytes for U+0000.
func appendUnits(dst, body []byte, nul string) []byte {
	for len(body) > 0 {
		r, size := point(body)
		switch {
		case r == 0:
			dst = append(dst, nul...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			dst = appendPoint(appendPoint(dst, high), low)
		default:
			dst = append(dst, body[:size]...)
		}
		body = body[size:]
	}
	return dst
}

// readUnits is the inverse of appendUnits. All of b has to be n units in their shortest form.
func readUnits(b []byte, n uint64, nul string) (body []byte, reason string) {
	if size := uint64(len(b)); n > size || size > 3*n {
		return nil, fmt.Sprintf("%d bytes cannot be the %d characters that are announced", size, n)
	}
	body = make([]byte, 0, len(b))
	var last rune
	for ; len(b) > 0; n-- {
		r, size := unit(b, nul)
		if size == 0 || n == 0 {
			return nil, "the characters are not those that are announced"
		}
		body = joinUnit(body, last, r)
		last, b = r, b[size:]
	}
	if n > 0 {
		return nil, "the characters are fewer than announced"
	}
	return body, ""
}

func unit(b []byte, nul string) (r rune, size int) {
	if bytes.HasPrefix(b, []byte(nul)) {
		return 0, len(nul)
	}
	r, size = point(b)
	if r == 0 || r > 0xffff {
		return 0, 0
	}
	return r, size
}

// joinUnit appends a unit, or a code point, behind the one that was appended last: as a pair if
// they make one.
func joinUnit(dst []byte, last, r rune) []byte {
	if isHigh(last) && isLow(r) {
		return utf8.AppendRune(dst[:len(dst)-3], utf16.DecodeRune(last, r))
	}
	return appendPoint(dst, r)
}
