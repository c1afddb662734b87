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
	"syscall"
	"testing"
	"time"

	"github.com/delayq/delayq/internal/testenv"
)

// asProgram makes the test binary the program.
const asProgram = "DELAYQ_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	start := program
	program = func(ctx context.Context, args ...string) *exec.Cmd {
		cmd := start(ctx, args...)
		cmd.Env = append(os.Environ(), asProgram+"=1")
		return cmd
	}
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
	delayqRun(t, "demo", "--help").wantOutput(t, "time scale of its own", "--speed", "--input", "--url", "--workers", `{"id": "order-17", "after"`)
}

// "help" in front of a command's name is --help behind it.
func TestHelpCommand(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"", "push", "dead", "dead list", "redisson inspect", "help"} {
		words := strings.Fields(command)
		runOK(t, append([]string{"help"}, words...)...).want(t, runOK(t, append(words, "--help")...))
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	r := inProcess(t, "version")
	r.want(t, inProcess(t, "--version"))
	if !regexp.MustCompile(`^delayq \S+ go1\.\S+ \w+/\w+\n$`).MatchString(r.stdout) || r.code != exitOK {
		t.Errorf("got %+v", r)
	}
}

// Each command must fail before it does anything, with one line that contains the text. URL stands
// for a queue that is shared with Java.
func TestWrongUsage(t *testing.T) {
	t.Parallel()
	url := newJavaQueue(t).url
	for args, want := range map[string]string{
		"":                           `expected one of "push", "consume", "stats", "get", "queues", ... (see delayq --help)`,
		"dmeo":                       `unexpected argument dmeo, did you mean "demo"? (see delayq --help)`,
		"demo extra":                 `unexpected argument extra (see delayq demo --help)`,
		"demo --fast":                `unknown flag --fast (see delayq demo --help)`,
		"demo --speed=fast":          `--speed: expected a number but got "fast" (see delayq demo --help)`,
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

		"push":                                  "expected a queue's URL, as zsetpoll://HOST:6379/QUEUE (see delayq push --help)",
		"stats orders":                          `unknown URL scheme "" (expected SCHEME://HOST/QUEUE; schemes: `,
		"push memory:///q - --id=a":             "--id: allowed with a BODY",
		"push memory:///q --id=a":               "--id: allowed with a BODY",
		"push memory:///q x --header=a":         "--header=a: allowed is KEY=VALUE",
		"push memory:///q x --after=1":          `--after: "1": allowed is a duration, as "1.5s", "30m", "1d12h" or "2w"`,
		"push memory:///q x --at=soon":          `--at: "soon": allowed is a time, as "2030-01-31 18:00", "31 Jan 2030 18:00", "tomorrow 9:00" or "2030-01-31T18:00:00Z"`,
		"stats memory:///q --every=1d":          "--every=1d: allowed is 100ms to 1h",
		"peek memory:///q --limit=0":            "peek: --limit=0: allowed is 1 to 1000000 (see delayq peek --help)",
		"dead list memory:///q --limit=-1":      "dead list: --limit=-1: allowed is 1 to 1000000",
		"help nosuch":                           `no command is called "nosuch"`,
		"help dead nosuch":                      `no command is called "dead nosuch"`,
		"version now":                           "unexpected argument now",
		"push memory:///q x --header=delayq-a=": `invalid header key "delayq-a"`,
		"push memory:///q x --after=-1s":        "invalid delay -1s",
		"push memory:///q x --after=1s --at=2030-01-31T18:00:00Z": "--after and --at: allowed is one of them",

		"consume memory:///q --exec":                    "--exec: expected a command after --",
		"consume memory:///q true":                      "unexpected argument true: a command needs --exec",
		"consume memory:///q --exec -- no-such-cmd-x":   `--exec: exec: "no-such-cmd-x": executable file not found`,
		"consume memory:///q --retry=soon":              "allowed are delays, as 10s,1m,1h, or exponential",
		"consume memory:///q --retry=exponential:1s":    "allowed is exponential:BASE,MAX",
		"consume memory:///q --retry=exponential:2s,1s": "invalid Backoff.Max 1s",
		"consume memory:///q --workers=0":               "invalid Workers 0",
		"consume memory:///q --workers=0 --count=1":     "invalid Workers 0",
		"consume memory:///q --lease=1ns":               "invalid WithLease 1ns",
		"consume memory:///q --count=-1":                "allowed is 0 or more",
		"consume memory:///q --rate=-1":                 "--rate=-1: allowed is more than 0",
		"consume memory:///q --idle=1ms --rate=0":       "--rate=0: allowed is more than 0",
		"consume memory:///q --idle=1ms --rate=NaN":     "--rate=NaN: allowed is more than 0",
		"consume memory:///q --idle=1ms --rate=Inf":     "--rate=+Inf: allowed is more than 0, and finite",

		"verify memory:///q --run=(":        "--run=(: error parsing regexp",
		"verify memory:///q --run=nosuch":   "--run=nosuch: no check is called that",
		"verify memory:///q --slack=1ms":    "--slack=1ms: allowed is 10ms to 1m",
		"verify memory:///q --tick=2m":      "--tick=2m: allowed is 10ms to 1m",
		"verify memory:///q --test.v":       "unknown flag --test.v",
		"verify memory:///q --rapid.checks": "unknown flag --rapid.checks",
		"verify nosuch:///q":                "unknown URL scheme",
		"verify zsetpoll://localhost":       "invalid URL path",
		"verify rabbitmq://%zz/q":           "invalid URL",

		"redisson":                            `expected one of "inspect", "quarantine", "restore" (see delayq redisson --help)`,
		"redisson inspect":                    "expected a queue's URL, as zsetpoll://HOST:6379/QUEUE (see delayq redisson inspect --help)",
		"redisson inspect URL --pending=-1":   `--pending=-1: allowed is 0 to 100000`,
		"redisson inspect URL?codec=xml":      `invalid URL parameter codec "xml"`,
		"redisson inspect memory:///q":        `begins with redisson://`,
		"redisson inspect nosuch:///q":        `unknown URL scheme "nosuch"`,
		"redisson quarantine URL --limit=0":   `--limit=0: allowed is 1 to 100000`,
		"redisson restore URL":                `expected ids, or --all without ids`,
		"redisson restore URL 0123 --all":     `expected ids, or --all without ids`,
		"redisson restore redisson:///q 0123": `invalid URL`,
	} {
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

// TestHelpUnwritten writes the help to a reader that has gone, and to a full disk.
func TestHelpUnwritten(t *testing.T) {
	for _, args := range [][]string{{"help"}, {"--help"}, {"push", "--help"}, {"help", "dead", "list"}} {
		for err, want := range map[error]int{syscall.EPIPE: exitPipe, syscall.ENOSPC: exitOutput} {
			var log strings.Builder
			got := run(t.Context(), args, strings.NewReader(""), failingWriter{err}, &log)
			if got != want || strings.Contains(log.String(), "(see") {
				t.Errorf("%v: %v: got %d, want %d; %s", args, err, got, want, &log)
			}
		}
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }
