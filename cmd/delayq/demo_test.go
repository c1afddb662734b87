package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/delayq/delayq"
)

const promisesKept = `\| early 0 lost 0 duplicates 0 fired-after-cancel 0 altered 0 left 0 \|`

func TestScenes(t *testing.T) {
	t.Parallel()
	r := runOK(t, "demo", "--speed=20")
	r.wantOutput(t,
		"1. Orders", "(3h20m pass in a second: 12000x)",
		"paid in time: its timeout is cancelled", "not paid: the order cancels itself",
		"2. A merchant", "3. A review",
		"worker A takes it as attempt 1 and dies", "worker B gets it as attempt 2",
		"attempt 3: the handler panics",
		"is a dead letter after 3 attempts: handler panicked: no VAT rate for Atlantis (and ",
		"goes back into the queue",
		"pushes 3 reminders into it", "takes it as attempt 1, and is killed with -9", "when the dead process' lease has ended",
	)
	r.wantSummary(t, "pushed 38 ", "dead 1 redriven 1 ", promisesKept)
	if r.stderr != "" || strings.Contains(r.stdout, "\x1b") {
		t.Errorf("log on standard error or colours in a pipe: %q", r.stderr)
	}
}

func TestVerboseShowsTheLog(t *testing.T) {
	t.Parallel()
	r := runOK(t, "demo", "--speed=100", "--verbose", "--workers=1")
	r.wantSaid(t, `msg="delayq: message is dead"`)
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &tripwire{word: "order-03", pull: cancel}
	code := run(ctx, []string{"demo"}, nil, out, io.Discard)
	r := result{code: code, stdout: out.buf.String()}
	r.wantCode(t, 130)
	r.wantOutput(t, "not handled yet: ")
	r.wantSummary(t, promisesKept) // a run cut short has broken nothing
}

func TestInterruptedWhileReading(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	stdin, writer := io.Pipe()
	defer func() { _ = writer.Close() }()
	go func() {
		_, _ = writer.Write([]byte("{}\n")) // returns when the program reads
		cancel()
	}()
	runIn(ctx, stdin, "demo", "--input=-").wantCode(t, 130)
}

// newURL names a queue that no test has used before, not even this one: stores live as long as
// the process.
func newURL(scheme string) string { return scheme + ":///" + rand.Text() }

func TestQueueInUse(t *testing.T) {
	t.Parallel()
	url := newURL("memory")
	push(t, openQueue(t, url), "theirs")
	r := delayqRun(t, "demo", "--url", url)
	r.wantCode(t, 2)
	r.wantSaid(t, "the queue holds 1 message: the demo needs one of its own")
}

func TestForeignMessageIsGivenBack(t *testing.T) {
	t.Parallel()
	url := newURL("memory")
	q := openQueue(t, url)
	var err error
	push := func() { _, err = q.Push(t.Context(), nil, delayq.ID("theirs")) }
	out := &tripwire{word: "order-03", pull: sync.OnceFunc(push)}
	code := run(t.Context(), []string{"demo", "--speed=20", "--url", url}, nil, out, io.Discard)
	mustDo(t, err)
	r := result{code: code, stdout: out.buf.String()}
	r.wantCode(t, 0)
	r.wantOutput(t, "theirs was not pushed by this demo: given back for 1m")
	if s, err := q.Stats(t.Context()); err != nil || s.Scheduled != 1 {
		t.Errorf("got %+v, %v; want their message back in the queue", s, err)
	}
}

func file(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "orders.jsonl")
	mustDo(t, os.WriteFile(name, []byte(content), 0o600))
	return name
}

const goodInput = `{"id":"late","after":"2m","body":{"total": 12.50}}

{"id":"soon","after":"1m","body":"hello"}
{"body":"\u001b[31mred"}
{"id":"past","due":"2001-01-01T00:00:00Z"}`

func TestReplay(t *testing.T) {
	t.Parallel()
	r := runOK(t, "demo", "--speed=600", "--workers=1", "--input", file(t, goodInput))
	r.wantOutput(t, "4 messages from ", "at speed 600; the last is due in 200ms.", `{"total": 12.50} (`, `line-4      "\x1b[31mred" (`)
	if soon, late := strings.Index(r.stdout, "  soon  "), strings.Index(r.stdout, "  late  "); soon < 0 || late < soon {
		t.Errorf("soon at %d, late at %d; want them in this order:\n%s", soon, late, r.stdout)
	}
	r.wantSummary(t, "^summary: pushed 4 handled 4 cancelled 0 dead 0 redriven 0 "+promisesKept)
}

func TestReplayOfStandardInput(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		goodInput: "^summary: pushed 4 handled 4 ",
		"":        "^summary: pushed 0 handled 0 ",
		"\n \n":   "^summary: pushed 0 handled 0 ",
	} {
		r := runIn(t.Context(), strings.NewReader(input), "demo", "--speed=1e6", "--input=-")
		r.wantCode(t, 0)
		r.wantSummary(t, want)
	}
}

func TestReplayOfManyMessages(t *testing.T) {
	t.Parallel()
	const n = 20_000
	var input strings.Builder
	for i := range n {
		_, _ = fmt.Fprintf(&input, "{\"id\":\"m%d\",\"after\":\"%dms\",\"body\":%d}\n", i, i%100, i)
	}
	r := runIn(t.Context(), strings.NewReader(input.String()), "demo", "--input=-", "--workers=32")
	r.wantCode(t, 0)
	r.wantSummary(t, fmt.Sprintf("^summary: pushed %d handled %d cancelled 0 dead 0 redriven 0 %s", n, n, promisesKept))
}

func TestReplayOfBadInput(t *testing.T) {
	t.Parallel()
	name := file(t, "{\"id\":\"a\"}\n{\"after\":\"3 minutes\"}\n{\"id\":\"a\"}\n")
	r := delayqRun(t, "demo", "--input", name)
	r.wantCode(t, 2)
	want := "delayq: NAME: 2 bad lines; nothing was pushed\n" +
		"NAME:2: after \"3 minutes\": allowed is a string with a duration, as \"1.5s\", \"30m\", \"1d12h\" or \"2w\"\n" +
		"NAME:3: id \"a\" is that of line 1: allowed is one line for each id\n"
	if got := strings.ReplaceAll(r.stderr, name, "NAME"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if r.stdout != "" {
		t.Errorf("on standard output: %s", r.stdout)
	}
}

func TestReplayIntoAFullQueue(t *testing.T) {
	t.Parallel()
	input := strings.Repeat("{\"after\":\"1h\"}\n", 5)
	r := runIn(t.Context(), strings.NewReader(input), "demo", "--input=-", "--url", newURL("memory")+"?max_messages=3")
	r.wantCode(t, 5)
	if want := "delayq: stdin:4: pushing it: queue is full\n"; r.stderr != want {
		t.Errorf("got %q, want %q", r.stderr, want)
	}
	r.wantSummary(t, "^summary: pushed 3 handled 0 ")
}

// The faults are defined in broken_test.go. Each is one that a user would want reported.
func TestBrokenPromisesAreNoticed(t *testing.T) {
	t.Parallel()
	for fault, want := range map[string]string{
		"early":     ` early [1-9]`,
		"lossy":     ` lost ([2-9]|1[0-9])`, // in two scenes
		"dead":      ` lost [1-9]`,
		"twice":     ` (duplicates|left) [1-9]`,
		"uncancel":  ` fired-after-cancel [1-9]`,
		"altering":  ` altered [1-9]`,
		"forgetful": ` left [1-9]`,
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			r := delayqRun(t, "demo", "--speed=20", "--patience=300ms", "--url", newURL("broken-"+fault))
			r.wantCode(t, 1)
			r.wantSummary(t, want)
			r.wantSaid(t, "a promise was broken")
		})
	}
}

// A message that is later than its scene had patience for is handled in the next one.
func TestMessageOfAnEarlierScene(t *testing.T) {
	t.Parallel()
	r := runOK(t, "demo", "--speed=20", "--patience=10s", "--url", newURL("broken-late"))
	r.wantOutput(t, "review-03   worker A takes it", "review-03   worker B gets it")
	r.wantSummary(t, "pushed 38 ", "dead 1 redriven 1 ", promisesKept)
}

func TestBackendWithoutExtras(t *testing.T) {
	t.Parallel()
	r := runOK(t, "demo", "--speed=20", "--url", newURL("plain"))
	r.wantOutput(t, "this backend cannot cancel", "timeout finds it answered", "left out: ")
	r.wantSummary(t, "cancelled 0 dead 0 redriven 0 "+promisesKept)
}
