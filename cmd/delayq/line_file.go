package main

import (
	"io"
	"os"
)

// A lineFile is a file of lines. It removes the part of a line that was written before an error, as
// on a full disk: the next line would continue it, and neither could be read.
type lineFile struct {
	file *os.File
	torn bool // the file ends in a line, which the next one must not continue
}

// Write writes a line, or nothing.
func (l *lineFile) Write(line []byte) (int, error) {
	text := line
	if l.torn {
		text = append([]byte("\n"), line...)
	}
	before, err := l.file.Stat()
	if err != nil {
		return 0, err
	}
	n, err := l.file.Write(text)
	if err == nil {
		l.torn = false
		return len(line), nil
	}
	if n > 0 && !l.cut(before.Size(), n) {
		l.torn = true
	}
	return 0, err
}

// cut removes the last n bytes, and reports whether it did. Those of a file that another program
// wrote to meanwhile may be that program's.
func (l *lineFile) cut(size int64, n int) bool {
	after, err := l.file.Stat()
	if err != nil || after.Size() != size+int64(n) || l.file.Truncate(size) != nil {
		return false
	}
	_, err = l.file.Seek(size, io.SeekStart) // where O_APPEND does not, or the next line follows a gap
	return err == nil
}

// endsInLine reports whether the last line has no end, as after a crash. It is false for a file
// that cannot be read.
func endsInLine(f *os.File) bool {
	again, err := os.Open(f.Name()) // the output is open for writing only
	if err != nil {
		return false
	}
	defer func() { _ = again.Close() }()
	last := make([]byte, 1)
	if _, err := again.Seek(-1, io.SeekEnd); err != nil {
		return false
	}
	_, err = again.Read(last)
	return err == nil && last[0] != '\n'
}
