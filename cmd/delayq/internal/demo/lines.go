package demo

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// maxLine holds the largest body with room for escapes and the other fields.
const maxLine = 32 << 20

// A lineReader reads lines of up to limit bytes, and past longer ones.
type lineReader struct {
	in      *bufio.Reader
	limit   int
	number  int    // of the line, from 1
	text    []byte // without its end; valid until next
	tooLong bool
	err     error
}

func newLineReader(r io.Reader, limit int) *lineReader {
	return &lineReader{in: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// next reads a line; it returns false at the end and after an error.
func (l *lineReader) next() bool {
	l.text, l.tooLong = l.text[:0], false
	for {
		part, err := l.in.ReadSlice('\n')
		l.keep(part)
		switch {
		case err == nil:
			l.number++
			l.trim()
			return true
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			if len(l.text) == 0 && !l.tooLong {
				return false
			}
			l.number++
			l.trim()
			return true
		default:
			l.err = err
			return false
		}
	}
}

func (l *lineReader) keep(part []byte) {
	if len(l.text)+len(part) > l.limit+len("\r\n") {
		l.tooLong = true
	}
	if !l.tooLong {
		l.text = append(l.text, part...)
	}
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// trim takes off what is not of the line: its end, and what Windows programs begin a file with.
func (l *lineReader) trim() {
	l.text = bytes.TrimSuffix(l.text, []byte("\n"))
	l.text = bytes.TrimSuffix(l.text, []byte("\r"))
	if l.number == 1 {
		l.text = bytes.TrimPrefix(l.text, byteOrderMark)
	}
}

// validText refuses what a JSON decoder would replace in silence or describe badly.
func validText(text []byte) error {
	if i := bytes.IndexByte(text, 0); i >= 0 {
		return fmt.Errorf(`NUL at byte %d: allowed is UTF-8 text, with NUL written as \u0000`, i+1)
	}
	if !utf8.Valid(text) {
		return fmt.Errorf("invalid UTF-8 at byte %d: allowed is UTF-8 text", validPrefix(text)+1)
	}
	return nil
}

func validPrefix(text []byte) (n int) {
	for n < len(text) {
		r, size := utf8.DecodeRune(text[n:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		n += size
	}
	return n
}

func blank(text []byte) bool { return len(bytes.TrimSpace(text)) == 0 }
