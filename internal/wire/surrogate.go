package wire

import (
	"bytes"
	"strconv"
	"unicode/utf16"
)

// HalfCharacter returns the first escape in JSON that is half a surrogate pair, "" for none. A
// decoder would replace it without an error.
func HalfCharacter(text []byte) string {
	for i := bytes.IndexByte(text, '\\'); i >= 0 && i+1 < len(text); {
		first, size := escapedUnit(text[i:])
		if utf16.IsSurrogate(first) {
			second, _ := escapedUnit(text[min(i+size, len(text)):])
			if utf16.DecodeRune(first, second) == '�' {
				return string(text[i : i+size])
			}
			size *= 2
		}
		next := bytes.IndexByte(text[i+size:], '\\')
		if next < 0 {
			return ""
		}
		i += size + next
	}
	return ""
}

// escapedUnit reads the escape that a text begins with, and returns its size. The unit is 0 for one
// without four digits.
func escapedUnit(text []byte) (unit rune, size int) {
	const size4 = len(`\ud800`)
	if len(text) >= size4 && text[0] == '\\' && text[1] == 'u' {
		if n, err := strconv.ParseUint(string(text[2:size4]), 16, 16); err == nil {
			return rune(n), size4
		}
	}
	return 0, min(2, len(text))
}
