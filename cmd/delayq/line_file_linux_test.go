package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq"
)

// consumeInto runs consume with its output in a file.
func consumeInto(t *testing.T, script, file string, args ...string) result {
	t.Helper()
	cmd := process(t, append([]string{"consume"}, args...)...)
	cmd.Env = append(cmd.Env, "FILE="+file)
	inShell(t, cmd, script)
	said, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), "", string(said)}
}

func wantFile(t *testing.T, file, want string) {
	t.Helper()
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

// A file that is full in the middle of a line keeps the lines before. The next run appends the
// message as a line of its own.
func TestConsumeIntoFullFile(t *testing.T) {
	t.Parallel()
	for _, redirection := range []string{">", ">>"} {
		url, file := redisURL(t, "zsetpoll"), filepath.Join(t.TempDir(), "lines")
		q := openQueue(t, url)
		push(t, q, "a-short")
		_, err := q.Push(t.Context(), []byte(strings.Repeat("x", 5000)), delayq.ID("b-long"))
		mustDo(t, err)
		consumeInto(t, `ulimit -f 1; "$@" `+redirection+` "$FILE"`, file, url, "--lease=1h").wantCode(t, exitOutput)
		wantStats(t, q, 0, 1, 0)
		short, err := os.ReadFile(file)
		mustDo(t, err)
		if all := decodeLines[messageJSON](t, string(short)); len(all) != 1 || all[0].ID != "a-short" || !strings.HasSuffix(string(short), "}\n") {
			t.Errorf("%s: got %q", redirection, short)
		}
		consumeInto(t, `"$@" >> "$FILE"`, file, url, "--count=1").wantCode(t, exitOK)
		both, err := os.ReadFile(file)
		mustDo(t, err)
		if all := decodeLines[messageJSON](t, string(both)); len(all) != 2 || all[1].ID != "b-long" {
			t.Errorf("%s: got %q", redirection, both)
		}
	}
}

// A run that was killed in the middle of a line leaves half of it. The next line does not continue
// it.
func TestConsumeIntoFileThatEndsInLine(t *testing.T) {
	t.Parallel()
	for before, want := range map[string]string{"": "", "line\n": "line\n", "half of a li": "half of a li\n"} {
		url, file := redisURL(t, "zsetpoll"), filepath.Join(t.TempDir(), "lines")
		push(t, openQueue(t, url), "a", "b")
		mustDo(t, os.WriteFile(file, []byte(before), 0o600))
		consumeInto(t, `"$@" >> "$FILE"`, file, url, "--count=2").wantCode(t, exitOK)
		got, err := os.ReadFile(file)
		mustDo(t, err)
		lines, ok := strings.CutPrefix(string(got), want)
		if all := decodeLines[messageJSON](t, lines); !ok || len(all) != 2 || strings.Count(lines, "\n") != 2 {
			t.Errorf("after %q: got %q", before, got)
		}
	}
}

// What was written last is removed only where no other program has written since. The next line
// leaves no gap.
func TestLineFileCut(t *testing.T) {
	t.Parallel()
	for _, flags := range []int{os.O_WRONLY, os.O_WRONLY | os.O_APPEND} {
		name := filepath.Join(t.TempDir(), "lines")
		mustDo(t, os.WriteFile(name, nil, 0o600))
		f, err := os.OpenFile(name, flags, 0)
		mustDo(t, err)
		t.Cleanup(func() { _ = f.Close() })
		l := &lineFile{file: f}
		for _, text := range []string{"one\n", "half of a li"} {
			_, err := f.WriteString(text)
			mustDo(t, err)
		}
		if !l.cut(4, 12) {
			t.Error("half a line is left")
		}
		_, err = l.Write([]byte("two\n"))
		mustDo(t, err)
		wantFile(t, name, "one\ntwo\n")

		_, err = f.WriteString("half")
		mustDo(t, err)
		other, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
		mustDo(t, err)
		_, err = other.WriteString("other\n")
		mustDo(t, err)
		mustDo(t, other.Close())
		if l.cut(8, 4) {
			t.Error("a line of another program was cut")
		}
		wantFile(t, name, "one\ntwo\nhalfother\n")
	}
}

// Where half a line stays, the next one begins a new line. The file is a pipe that is full: it
// cannot be cut.
func TestLineFileThatCannotBeCut(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	mustDo(t, err)
	t.Cleanup(func() { _, _ = reader.Close(), writer.Close() })
	l := &lineFile{file: writer}
	failed := make(chan error, 1)
	go func() {
		_, err := l.Write(bytes.Repeat([]byte("x"), 1<<20))
		failed <- err
	}()
	_, err = reader.Read(make([]byte, 1)) // part of the line is written
	mustDo(t, err)
	mustDo(t, writer.SetWriteDeadline(time.Now()))
	if err := <-failed; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	_, err = io.ReadFull(reader, make([]byte, 8192)) // so that there is room
	mustDo(t, err)
	mustDo(t, writer.SetWriteDeadline(time.Time{}))
	for _, line := range []string{"one\n", "two\n"} {
		_, err := l.Write([]byte(line))
		mustDo(t, err)
	}
	mustDo(t, writer.Close())
	left, err := io.ReadAll(reader)
	if want := "\none\ntwo\n"; err != nil || strings.TrimLeft(string(left), "x") != want {
		t.Errorf("got %d bytes that end with %q, want %q", len(left), strings.TrimLeft(string(left), "x"), want)
	}
}
