package main

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/delayq/delayq/cmd/delayq/internal/human"
)

// isText reports whether bytes are printable UTF-8, with line ends and tabs.
func isText(b []byte) bool { return utf8.Valid(b) && unprintable(b) == 0 }

func unprintable(text []byte) (n int) {
	for _, r := range string(text) {
		if !unicode.IsPrint(r) && !strings.ContainsRune("\n\r\t", r) {
			n++
		}
	}
	return n
}

// excerpt shows bytes in up to limit columns: text in quotes, with escapes, and everything else in
// hex. The bytes that are cut off are counted.
func excerpt(b []byte, columns int) string {
	if !utf8.Valid(b) || 4*unprintable(b) > utf8.RuneCount(b) { // with many escapes
		return hexadecimal(b, columns)
	}
	text, quote := string(b), strconv.Quote
	// JSON is easier to read like that
	if strings.Contains(text, `"`) && strconv.CanBackquote(text) && isText(b) {
		quote = func(s string) string { return "`" + s + "`" }
	}
	if shown := quote(text); width(shown) <= columns {
		return shown
	}
	rest := suffix(len(b))
	return quote(text[:fitting(text, columns-width(rest)-2, quote)]) + rest
}

// fitting is how many bytes of a text fit into so many columns, quoted but for the quotes.
func fitting(text string, columns int, quote func(string) string) int {
	used := 0
	for i, r := range text {
		if used += width(quote(string(r))) - 2; used > columns {
			return i
		}
	}
	return len(text)
}

// suffix counts the bytes that were cut off.
func suffix(n int) string { return fmt.Sprintf("… (%s)", human.Count(n, "byte")) }

// hexadecimal shows bytes in hex, in up to so many columns.
func hexadecimal(b []byte, columns int) string {
	if whole := fmt.Sprintf("%x (%s)", b, human.Count(len(b), "byte")); len(whole) <= columns {
		return strings.TrimPrefix(whole, " ") // of no bytes
	}
	rest := suffix(len(b))
	return hex.EncodeToString(b[:(columns-width(rest))/2]) + rest
}

// printable makes a name safe to show: names from Redis may contain a terminal's control sequences.
func printable(name string) string {
	if strings.IndexFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }) < 0 {
		return name
	}
	return strconv.Quote(name)
}

// width counts runes beyond the alphabets as wide. Some of them are not, which only makes a line
// shorter.
func width(text string) (columns int) {
	for _, r := range text {
		columns++
		if r >= 0x1100 && (r < 0x2000 || r > 0x2e7f) {
			columns++
		}
	}
	return columns
}

// folded breaks a text between words into lines of so many columns.
func folded(text string, columns int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && width(line)+1+width(word) > columns {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}
