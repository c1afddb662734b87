// Package jsonl reads files with one JSON object a line, and describes a line's errors to the
// person who wrote it.
package jsonl

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/delayq/delayq/backend"
)

// MaxLine holds the largest message as "delayq consume" writes it. A control character of a text
// takes six bytes. JSON of several lines takes less, though it is written twice: a byte is one in
// "body", and one and a third in "body_base64". The rest is for the other fields.
const MaxLine = 6*backend.MaxBody + 1<<20

// A Reader reads lines of up to limit bytes, and skips longer ones. The exported fields describe
// the line last read.
type Reader struct {
	Number int   // from 1
	Err    error // that ended the reading, but for the end

	in      *bufio.Reader
	limit   int
	text    []byte // without its end
	tooLong bool
}

// NewReader returns a Reader of lines of up to limit bytes.
func NewReader(r io.Reader, limit int) *Reader {
	return &Reader{in: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// Text is the line, valid until Next; nil where it is blank. Its error says why it cannot be read.
func (l *Reader) Text() ([]byte, error) {
	if l.tooLong {
		return nil, fmt.Errorf("line too long: allowed are up to %d bytes", l.limit)
	}
	if err := validText(l.text); err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(l.text)) == 0 {
		return nil, nil
	}
	return l.text, nil
}

// Next reads a line; it returns false at the end and after an error.
func (l *Reader) Next() bool {
	l.text, l.tooLong = l.text[:0], false
	for {
		part, err := l.in.ReadSlice('\n')
		l.keep(part)
		switch {
		case err == nil:
			l.Number++
			l.trim()
			return true
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			if len(l.text) == 0 && !l.tooLong {
				return false
			}
			l.Number++
			l.trim()
			return true
		default:
			l.Err = err
			return false
		}
	}
}

func (l *Reader) keep(part []byte) {
	if len(l.text)+len(part) > l.limit+len("\r\n") {
		l.tooLong = true
	}
	if !l.tooLong {
		l.text = append(l.text, part...)
	}
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// trim removes the line's end, and the byte order mark of Windows programs.
func (l *Reader) trim() {
	l.text = bytes.TrimSuffix(l.text, []byte("\n"))
	l.text = bytes.TrimSuffix(l.text, []byte("\r"))
	if l.Number == 1 {
		l.text = bytes.TrimPrefix(l.text, byteOrderMark)
	}
	l.tooLong = l.tooLong || len(l.text) > l.limit // as long as a line end may be
}

// validText rejects bytes that a JSON decoder would silently replace or describe badly.
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
