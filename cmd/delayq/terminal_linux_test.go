package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal returns both ends of a new pseudo-terminal.
func terminal(t *testing.T) (user, program *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatalf("opening a terminal, which every Linux has: %v", err)
	}
	t.Cleanup(func() { _ = user.Close() })
	err = unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0)
	mustDo(t, err)
	n, err := unix.IoctlGetInt(int(user.Fd()), unix.TIOCGPTN)
	mustDo(t, err)
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	mustDo(t, err)
	return user, program
}

// shownOn collects a terminal's output, and closes the program's end once the program has started.
func shownOn(t *testing.T, cmd *exec.Cmd, user, program *os.File) *safeBuffer {
	t.Helper()
	mustDo(t, cmd.Start())
	_ = program.Close()
	shown := &safeBuffer{}
	go func() { _, _ = io.Copy(shown, user) }()
	return shown
}

func TestPurgeAsks(t *testing.T) {
	t.Parallel()
	url := redisURL(t, "zsetpoll")
	q := openQueue(t, url)
	schedule(t, q, 3)
	for _, c := range []struct {
		answer, want string
		left         int64
		fails        bool
	}{{"n\n", "nothing was deleted", 3, true}, {"\n", "nothing was deleted", 3, true}, {"y\n", "deleted 3", 0, false}} {
		user, program := terminal(t)
		cmd := process(t, "purge", url)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
		shown := shownOn(t, cmd, user, program)
		until(t, "question", func() bool { return strings.Contains(shown.String(), "Delete 3 messages of "+url+"? [y/N] ") }, shown)
		_, err := io.WriteString(user, c.answer)
		mustDo(t, err)
		if err := cmd.Wait(); (err != nil) != c.fails {
			t.Errorf("answer %q: %v", c.answer, err)
		}
		until(t, c.want, func() bool { return strings.Contains(shown.String(), c.want) }, shown)
		wantStats(t, q, c.left, 0, 0)
	}
}

// On a terminal the counts stay where they are.
func TestStatsWatchOnATerminal(t *testing.T) {
	t.Parallel()
	user, program := terminal(t)
	cmd := process(t, "stats", redisURL(t, "zsetpoll"), "--watch", "--every=100ms")
	cmd.Stdout = program
	shown := shownOn(t, cmd, user, program)
	until(t, "third frame", func() bool { return strings.Count(shown.String(), "\x1b[14A\x1b[J") > 1 }, shown)
	mustDo(t, cmd.Process.Signal(os.Interrupt))
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// Work that takes long has a bar on standard error, and ids nothing between them.
func TestPushShowsProgress(t *testing.T) {
	t.Parallel()
	user, program := terminal(t)
	in, writer := io.Pipe()
	cmd := process(t, "push", redisURL(t, "zsetpoll"))
	var ids safeBuffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &ids, program
	shown := shownOn(t, cmd, user, program)
	go func() {
		for range 1200 {
			if strings.Contains(shown.String(), "pushing") {
				break
			}
			_, _ = io.WriteString(writer, "{\"after\":\"1h\"}\n")
			// input that takes its time: the bar comes when work is long
			time.Sleep(100 * time.Millisecond)
		}
		_ = writer.Close()
	}()
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, shown.String())
	}
	if !strings.Contains(shown.String(), "pushing") {
		t.Errorf("no bar: %q", shown.String())
	}
	for _, id := range strings.Fields(ids.String()) {
		if len(id) != len("01M7ZVB122N5PSC54PPM2C7HT4") {
			t.Errorf("got the id %q", id)
		}
	}
}
