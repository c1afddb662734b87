package redisson

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The functions below walk over valid JSON, so they check for no errors.

func validJSON(b []byte) bool { return utf8.Valid(b) && json.Valid(b) }

func skipSpace(b []byte) []byte { return bytes.TrimLeft(b, " \t\r\n") }

// cutLiteral cuts the string off that b begins with, quotes included.
func cutLiteral(b []byte) (literal, rest []byte) {
	for i := 1; ; i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return b[:i+1], b[i+1:]
		}
	}
}

// unquote returns the body of a string with its quotes.
func unquote(literal []byte) []byte {
	b := literal[1 : len(literal)-1]
	body := make([]byte, 0, len(b))
	var last rune
	for len(b) > 0 {
		r, size := jsonUnit(b)
		body = joinUnit(body, last, r)
		last, b = r, b[size:]
	}
	return body
}

func jsonUnit(b []byte) (r rune, size int) {
	switch {
	case b[0] != '\\':
		return utf8.DecodeRune(b)
	case b[1] == 'u':
		n, _ := strconv.ParseUint(string(b[2:6]), 16, 16)
		return rune(n), 6
	}
	if i := strings.IndexByte("bfnrt", b[1]); i >= 0 {
		return rune("\b\f\n\r\t"[i]), 2
	}
	return rune(b[1]), 2
}

// escaping is how a version of Jackson writes strings.
type escaping struct {
	pairs bool // beyond the BMP as two escapes
}

func (e escaping) appendQuoted(dst, body []byte) []byte {
	dst = append(dst, '"')
	for len(body) > 0 {
		r, size := point(body)
		dst = e.appendPoint(dst, r)
		body = body[size:]
	}
	return append(dst, '"')
}

func (e escaping) appendPoint(dst []byte, r rune) []byte {
	switch {
	case r == '"' || r == '\\':
		return append(dst, '\\', byte(r))
	case r < ' ':
		return appendControl(dst, r)
	case isHigh(r) || isLow(r):
		return appendEscape(dst, r)
	case r > 0xffff && e.pairs:
		high, low := utf16.EncodeRune(r)
		return appendEscape(appendEscape(dst, high), low)
	default:
		return utf8.AppendRune(dst, r)
	}
}

func appendControl(dst []byte, r rune) []byte {
	if i := strings.IndexRune("\b\f\n\r\t", r); i >= 0 {
		return append(dst, '\\', "bfnrt"[i])
	}
	return appendEscape(dst, r)
}

func appendEscape(dst []byte, r rune) []byte {
	const digits = "0123456789ABCDEF"
	return append(dst, '\\', 'u', digits[r>>12], digits[r>>8&0xf], digits[r>>4&0xf], digits[r&0xf])
}

// compact drops the space between tokens and writes all strings anew.
func (e escaping) compact(b []byte) []byte {
	dst := make([]byte, 0, len(b))
	for b = skipSpace(b); len(b) > 0; b = skipSpace(b) {
		if b[0] != '"' {
			dst, b = append(dst, b[0]), b[1:]
			continue
		}
		var literal []byte
		literal, b = cutLiteral(b)
		dst = e.appendQuoted(dst, unquote(literal))
	}
	return dst
}
