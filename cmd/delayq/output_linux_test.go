package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// outputs cannot be written to. Each has its exit code.
func outputs(t *testing.T) iter.Seq2[int, *os.File] {
	t.Helper()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	mustDo(t, err)
	reader, writer, err := os.Pipe()
	mustDo(t, err)
	t.Cleanup(func() { _, _ = full.Close(), writer.Close() })
	mustDo(t, reader.Close())
	return func(yield func(int, *os.File) bool) {
		_ = yield(exitOutput, full) && yield(exitPipe, writer)
	}
}

// runInto runs the program with that as its standard output. It is closed where out is nil.
func runInto(t *testing.T, out *os.File, input string, args ...string) result {
	t.Helper()
	var stderr bytes.Buffer
	cmd := process(t, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), out, &stderr
	if out == nil {
		through(t, cmd, ">&-")
	}
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), "", stderr.String()}
}

// through has a shell redirect the output of cmd.
func through(t *testing.T, cmd *exec.Cmd, redirection string) {
	t.Helper()
	inShell(t, cmd, `"$@" `+redirection)
}

// inShell has a shell run a script, in which "$@" is cmd.
func inShell(t *testing.T, cmd *exec.Cmd, script string) {
	t.Helper()
	shell, err := exec.LookPath("sh")
	mustDo(t, err)
	cmd.Args = append([]string{"sh", "-c", script, "sh", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = shell
}

// An output to /dev/null is discarded by a shell, and by daemons' starters, which open it once for
// reading and writing.
func TestDiscardedOutput(t *testing.T) {
	t.Parallel()
	for _, redirection := range []string{">/dev/null", "<>/dev/null >&0", "2<>/dev/null >&2"} {
		url := redisURL(t, "zsetpoll")
		q := openQueue(t, url)
		push(t, q, "a", "b")
		cmd := process(t, "consume", url, "--count=2")
		through(t, cmd, redirection)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", redirection, err, out)
		}
		wantStats(t, q, 0, 0, 0)
	}
}

// Commands handle messages also where the output is closed: their statuses count.
func TestCommandsWithClosedOutput(t *testing.T) {
	t.Parallel()
	url := redisURL(t, "zsetpoll")
	q := openQueue(t, url)
	push(t, q, "a", "b")
	runInto(t, nil, "", "consume", url, "--exec", "--count=2", "--", "sh", "-c", "echo out; exit 0").wantCode(t, exitOK)
	wantStats(t, q, 0, 0, 0)
}

// Each command whose output cannot be written reports that, and the changes that it made.
func TestOutputThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	for code, out := range outputs(t) {
		for _, c := range []struct{ args, said string }{
			{"peek URL", ""}, {"peek URL --json", ""}, {"get URL a", ""}, {"get URL a --json", ""}, {"stats URL", ""}, {"stats URL --json", ""}, {"stats URL --watch --every=100ms", ""}, {"dead list URL --json", ""},
			{"completion bash", ""}, {"demo --speed=100", ""}, {"cancel URL a", "delayq: cancelled 1\n"}, {"cancel URL b nosuch --json", "delayq: cancelled 1\n"},
			{"reschedule URL c --after=2h", "delayq: rescheduled 1\n"}, {"dead redrive URL d", "delayq: redriven 1\n"}, {"purge URL --yes --json", "delayq: deleted 4\n"},
		} {
			url := redisURL(t, "zsetpoll")
			q := openQueue(t, url)
			makeDead(t, q, "d")
			pushLater(t, q, "a", "b", "c")
			r := runInto(t, out, "", strings.Fields(strings.ReplaceAll(c.args, "URL", url))...)
			r.wantCode(t, code)
			if !strings.Contains(r.stderr, c.said) || code == exitOutput && !strings.Contains(r.stderr, "delayq: writing: ") {
				t.Errorf("%s: exit code %d, and it says %q", c.args, r.code, r.stderr)
			}
		}
	}
}

// Standard error has the ids of the stored messages.
func TestPushWhoseOutputCannotBeWritten(t *testing.T) {
	t.Parallel()
	for code, out := range outputs(t) {
		url := redisURL(t, "zsetpoll")
		one := runInto(t, out, "", "push", url, "x", "--after=1h")
		one.wantCode(t, code)
		const input = `{"after":"2h"}` + "\n" + `{"id":"two","after":"3h"}` + "\nbad\n" + `{"id":"two"}` + "\n"
		lines := runInto(t, out, input, "push", url, "--json")
		lines.wantCode(t, code)
		all := waiting(t, url)
		if len(all) < 2 {
			t.Fatalf("got %d messages: %s%s", len(all), one.stderr, lines.stderr)
		}
		if want := fmt.Sprintf("delayq: stored as %q, which could not be written\n", all[0].ID); !strings.Contains(one.stderr, want) {
			t.Errorf("got %q, want %q", one.stderr, want)
		}
		for i, m := range all[1:] {
			if want := fmt.Sprintf("delayq: stdin:%d: stored as %q, which could not be written\n", i+1, m.ID); !strings.Contains(lines.stderr, want) {
				t.Errorf("got %q, want %q", lines.stderr, want)
			}
		}
		if !strings.Contains(lines.stderr, "delayq: stopped after stdin:") {
			t.Errorf("it does not say from where to go on: %q", lines.stderr)
		}
	}
}

// A message that could not be written is back in the queue, also where it may be tried only once.
func TestConsumeWhoseOutputCannotBeWritten(t *testing.T) {
	t.Parallel()
	for code, out := range outputs(t) {
		url := redisURL(t, "zsetpoll")
		q := openQueue(t, url)
		push(t, q, "a", "b", "c", "d")
		runInto(t, out, "", "consume", url, "--max-attempts=1", "--lease=1h", "--workers=2").wantCode(t, code)
		wantStats(t, q, 0, 4, 0)
	}
}

// A reader that goes leaves all messages in the queue whose lines it has not taken, no attempt
// counted, though they would fit into the pipe.
func TestConsumeIntoHead(t *testing.T) {
	t.Parallel()
	for _, workers := range []string{"1", "4"} {
		for _, scheme := range []string{"zsetpoll", "redisson"} {
			url := redisURL(t, scheme)
			if scheme == "redisson" {
				url += "?codec=envelope"
			}
			q := openQueue(t, url)
			for i := range 20 {
				push(t, q, fmt.Sprintf("m%02d", i))
			}
			cmd := process(t, "consume", url, "--lease=1h", "--workers="+workers)
			through(t, cmd, "| head -1")
			out, err := cmd.Output()
			if line := string(out); err != nil || strings.Count(line, "\n") != 1 || !strings.Contains(line, `"attempt":1`) {
				t.Errorf("%v: %s", err, out)
			}
			wantStats(t, q, 0, 19, 0)
			for _, m := range waiting(t, url) {
				if *m.Attempts != 0 || strings.Contains(string(out), `"`+m.ID+`"`) {
					t.Errorf("left after %s: %+v", out, m)
				}
			}
		}
	}
}

// A reader that goes while there is nothing to print ends the program, before it takes a message.
// One that goes with the last line of --count is no failure.
func TestConsumeIntoReaderThatGoes(t *testing.T) {
	t.Parallel()
	url := redisURL(t, "zsetpoll")
	q := openQueue(t, url)
	for i := range 10 {
		for count, code := range map[string]int{"--count=0": exitPipe, "--count=1": exitOK} {
			push(t, q, fmt.Sprint(count, i))
			r := untilOneLine(t, process(t, "consume", url, count))
			r.wantCode(t, code)
			if !strings.Contains(r.stdout, `"attempt":1`) || strings.HasPrefix(r.stderr, "delayq:") {
				t.Errorf("got %+v", r)
			}
		}
	}
	wantStats(t, q, 0, 0, 0)
}

// A reader that takes all and goes at once has taken it, also where that is between two looks.
func TestTakenByReaderThatGoes(t *testing.T) {
	t.Parallel()
	for range 5000 {
		reader, writer, err := os.Pipe()
		mustDo(t, err)
		_, err = writer.WriteString("line\n")
		mustDo(t, err)
		read := make(chan error, 1)
		go func() {
			_, err := reader.Read(make([]byte, 10))
			read <- errors.Join(err, reader.Close())
		}()
		if err := pipeOf(writer).taken(t.Context()); err != nil {
			t.Fatal(err)
		}
		mustDo(t, errors.Join(<-read, writer.Close()))
	}
}

// untilOneLine runs a program whose output is a pipe, which its reader leaves after a line.
func untilOneLine(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var stderr bytes.Buffer
	reader, writer, err := os.Pipe()
	mustDo(t, err)
	cmd.Stdout, cmd.Stderr = writer, &stderr
	mustDo(t, cmd.Start())
	mustDo(t, writer.Close())
	line, err := bufio.NewReader(reader).ReadString('\n')
	mustDo(t, errors.Join(err, reader.Close()))
	_ = cmd.Wait() // the exit code says more
	return result{cmd.ProcessState.ExitCode(), line, stderr.String()}
}

// A line that the reader has not taken when the program is told to end is not lost.
func TestConsumeIntoReaderThatWaits(t *testing.T) {
	t.Parallel()
	url := redisURL(t, "zsetpoll")
	q := openQueue(t, url)
	push(t, q, "a", "b")
	reader, writer, err := os.Pipe()
	mustDo(t, err)
	defer func() { _ = reader.Close() }()
	cmd := process(t, "consume", url, "--drain=100ms", "--max-attempts=1")
	cmd.Stdout = writer
	mustDo(t, cmd.Start())
	mustDo(t, writer.Close())
	until(t, "line in the pipe", func() bool {
		n, err := unix.IoctlGetInt(int(reader.Fd()), unix.TIOCINQ)
		return err == nil && n > 0
	})
	mustDo(t, cmd.Process.Signal(syscall.SIGTERM))
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	wantStats(t, q, 0, 2, 0)
}

// Messages that would be written to nowhere stay in the queue.
func TestConsumeWithClosedOutput(t *testing.T) {
	t.Parallel()
	url := redisURL(t, "zsetpoll")
	q := openQueue(t, url)
	push(t, q, "a", "b")
	runInto(t, nil, "", "consume", url, "--max-attempts=1", "--lease=1h").wantCode(t, exitOutput)
	wantStats(t, q, 0, 2, 0)
	runInto(t, nil, "", "push", url, "c").wantCode(t, exitOK)
	wantStats(t, q, 0, 3, 0)
}

// A command's exit status decides about its message, whatever happens to its output.
func TestCommandsWhoseOutputCannotBeWritten(t *testing.T) {
	t.Parallel()
	for code, out := range outputs(t) {
		url := redisURL(t, "zsetpoll")
		q := openQueue(t, url)
		push(t, q, "a", "b")
		runInto(t, out, "", "consume", url, "--exec", "--lease=1h", "--", "sh", "-c", "echo out; exit 0").wantCode(t, code)
		wantStats(t, q, 0, 1, 0)
	}
}

// A command has signals as it would have them from a shell: a pipe of its own that breaks ends it.
func TestCommandsHaveBrokenPipes(t *testing.T) {
	t.Parallel()
	url := redisURL(t, "zsetpoll")
	q := openQueue(t, url)
	push(t, q, "a")
	inProcess(t, "consume", url, "--exec", "--count=1", "--retry=1h", "--", "sh", "-c", "kill -PIPE $$; exit 0").wantCode(t, exitOK)
	wantStats(t, q, 1, 0, 0)
}
