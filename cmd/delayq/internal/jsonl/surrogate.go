package jsonl

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
)

// ErrSurrogate is wrapped by the error of a string with half a surrogate pair. JSON has escapes
// for halves, and a decoder replaces them without an error.
var ErrSurrogate = errors.New("half a character")

// wholeCharacters checks the strings of raw JSON, and no other value.
func wholeCharacters(value []byte) error {
	if len(value) == 0 || value[0] != '"' {
		return nil
	}
	for i := 0; i < len(value)-1; i++ {
		if value[i] != '\\' {
			continue
		}
		first, ok := escapedUnit(value[i:])
		if !ok {
			i++
			continue
		}
		second, _ := escapedUnit(value[i+escapeLen:])
		switch {
		case !utf16.IsSurrogate(first):
			i += escapeLen - 1
		case utf16.DecodeRune(first, second) != unreadable:
			i += 2*escapeLen - 1
		default:
			return fmt.Errorf("%w, %s: allowed is Unicode text", ErrSurrogate, value[i:i+escapeLen])
		}
	}
	return nil
}

const (
	escapeLen  = len(`\ud800`)
	unreadable = '\ufffd'
)

// escapedUnit reads an escape of four digits.
func escapedUnit(text []byte) (unit rune, ok bool) {
	if len(text) < escapeLen || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:escapeLen]), 16, 16)
	return rune(n), err == nil
}
