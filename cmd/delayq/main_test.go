package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/delayq/delayq/internal/testenv"
)

// asProgram makes the test binary the program.
const asProgram = "DELAYQ_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		// the arguments are the program's; the suite reads the flags of tests
		_ = flag.CommandLine.Parse(nil)
		main()
	}
	testenv.Main(m)
}

// process is the program in a process of its own, not yet started.
func process(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

func inProcess(t *testing.T, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := process(t, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// result is the output and exit code of a run of the program.
type result struct {
	code           int
	stdout, stderr string
}

func runIn(ctx context.Context, stdin io.Reader, args ...string) result {
	var stdout, stderr bytes.Buffer
	code := run(ctx, args, stdin, &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}

func delayqRun(t *testing.T, args ...string) result {
	t.Helper()
	return runIn(t.Context(), strings.NewReader(""), args...)
}

// runOK runs a command that must succeed.
func runOK(t *testing.T, args ...string) result {
	t.Helper()
	r := delayqRun(t, args...)
	r.wantCode(t, exitOK)
	return r
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// until waits for a condition. A failure shows what was said.
func until(t *testing.T, what string, ok func() bool, said ...fmt.Stringer) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %s within a minute: %v", what, said)
		}
	}
}

// want compares the whole result.
func (r result) want(t *testing.T, want result) {
	t.Helper()
	if r != want {
		t.Errorf("got %+v, want %+v", r, want)
	}
}

// wantUsageErrors runs commands, in which URL stands for that URL. Each must fail before it does
// anything, with one line that contains the text.
func wantUsageErrors(t *testing.T, url string, commands map[string]string) {
	t.Helper()
	for args, want := range commands {
		r := delayqRun(t, strings.Fields(strings.ReplaceAll(args, "URL", url))...)
		r.wantCode(t, exitUnusable)
		said := strings.TrimPrefix(r.stderr, "delayq: this queue lives in this process: its messages are gone when it ends\n")
		if !strings.HasPrefix(said, "delayq: ") || !strings.Contains(said, want) || strings.Count(said, "\n") != 1 {
			t.Errorf("%q\ngot  %swant one line with %s", args, said, want)
		}
		if r.stdout != "" {
			t.Errorf("%q: on standard output: %s", args, r.stdout)
		}
	}
}

// wantCode also shows the program's standard error when the code is wrong.
func (r result) wantCode(t *testing.T, want int) {
	t.Helper()
	if r.code != want {
		t.Errorf("exit code: got %d, want %d\n%s%s", r.code, want, r.stdout, r.stderr)
	}
}

func (r result) wantOutput(t *testing.T, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(r.stdout, p) {
			t.Errorf("no %q in the output:\n%s", p, r.stdout)
		}
	}
}

// wantSaid wants a part of the standard error.
func (r result) wantSaid(t *testing.T, part string) {
	t.Helper()
	if !strings.Contains(r.stderr, part) {
		t.Errorf("no %q on standard error: %s", part, r.stderr)
	}
}

// wantSummary wants parts of the last line, which is the only one of its kind, by regular
// expressions.
func (r result) wantSummary(t *testing.T, parts ...string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(r.stdout, "\n"), "\n")
	last := lines[len(lines)-1]
	if n := strings.Count(r.stdout, "summary:"); n != 1 || !strings.HasPrefix(last, "summary: ") {
		t.Errorf("%d summaries, and the last line is %q; want one, at the end", n, last)
	}
	for _, p := range parts {
		if !regexp.MustCompile(p).MatchString(last) {
			t.Errorf("no %s in %q", p, last)
		}
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	commands := [][]string{{"--help"}}
	for _, leaf := range leaves(t) {
		for words := strings.Fields(leaf.FullPath())[1:]; len(words) > 0; words = words[:len(words)-1] {
			commands = append(commands, append(slices.Clone(words), "--help"))
		}
	}
	for _, args := range commands {
		r := runOK(t, args...)
		if r.stderr != "" {
			t.Errorf("%q: on standard error: %s", args, r.stderr)
		}
	}
	help := delayqRun(t, "--help")
	help.wantOutput(t, "demo [flags]")
	for _, e := range exits {
		first, _, _ := strings.Cut(e.meaning, ";")
		help.wantOutput(t, fmt.Sprintf("%3d  %s", e.code, first))
	}
	delayqRun(t, "demo", "--help").wantOutput(t, "time scale of its own", "--speed", "--input", "--url", "--workers", `{"id": "order-17"`)
}

func TestWrongUsage(t *testing.T) {
	t.Parallel()
	wantUsageErrors(t, "", map[string]string{
		"":                           `expected one of "push", "consume", "stats", "peek", "cancel", ... (see delayq --help)`,
		"dmeo":                       `unexpected argument dmeo, did you mean "demo"? (see delayq --help)`,
		"demo extra":                 `unexpected argument extra (see delayq demo --help)`,
		"demo --fast":                `unknown flag --fast (see delayq demo --help)`,
		"demo --speed=fast":          `--speed: expected a float but got "fast" (string) (see delayq demo --help)`,
		"demo --speed=0":             `demo: --speed=0: allowed for the scenes is 0.01 to 100 (see delayq demo --help)`,
		"demo --speed=-1":            `demo: --speed=-1: allowed for the scenes is 0.01 to 100 (see delayq demo --help)`,
		"demo --speed=NaN":           `demo: --speed=NaN: allowed for the scenes is 0.01 to 100 (see delayq demo --help)`,
		"demo --speed=+Inf":          `demo: --speed=+Inf: allowed for the scenes is 0.01 to 100 (see delayq demo --help)`,
		"demo --speed=101":           `demo: --speed=101: allowed for the scenes is 0.01 to 100 (see delayq demo --help)`,
		"demo --speed=1e8 --input=-": `demo: --speed=1e+08: allowed with --input is 0.001 to 10000000 (see delayq demo --help)`,
		"demo --workers=0":           `demo: --workers=0: allowed is 1 to 10000 (see delayq demo --help)`,
		"demo --workers=10001":       `demo: --workers=10001: allowed is 1 to 10000 (see delayq demo --help)`,
		"demo --patience=0s":         `demo: --patience=0s: allowed is 10ms to 1h (see delayq demo --help)`,
		"demo --url=nosuch:///q":     `unknown URL scheme "nosuch"`,
		"demo --url=memory:///":      `invalid queue name ""`,
		"demo --url=:":               `invalid URL`,
		"demo --input=no-such-file":  `reading the input: open no-such-file`,
	})
}

// A tripwire calls pull at each write from the one on that completes so many of a word.
type tripwire struct {
	word  string
	times int // 0 is once
	pull  func()

	mu  sync.Mutex
	buf bytes.Buffer
}

func (w *tripwire) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf.Write(p)
	if bytes.Count(w.buf.Bytes(), []byte(w.word)) >= max(w.times, 1) {
		w.pull()
	}
	return len(p), nil
}
