package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/cmd/delayq/internal/jsonl"
	"github.com/delayq/delayq/internal/testenv"
)

func push(t *testing.T, q delayq.Queue, ids ...string) {
	t.Helper()
	for _, id := range ids {
		_, err := q.Push(t.Context(), []byte("body of "+id), delayq.ID(id))
		mustDo(t, err)
	}
}

func wantStats(t *testing.T, q delayq.Queue, scheduled, ready, dead int64) {
	t.Helper()
	s, err := q.Stats(t.Context())
	if err != nil || s.Scheduled != scheduled || s.Ready != ready || s.Dead != dead || s.InFlight != 0 {
		t.Errorf("got %+v, %v; want %d scheduled, %d ready, %d dead", s, err, scheduled, ready, dead)
	}
}

func TestConsumePrintsAndAcks(t *testing.T) {
	t.Parallel()
	url := newURL("memory")
	q := openQueue(t, url)
	push(t, q, "a", "b", "c")
	r := runOK(t, "consume", url, "--idle=3s")
	all := decodeLines[messageJSON](t, r.stdout)
	if len(all) != 3 || all[0].ID != "a" || *all[2].Body != "body of c" || all[1].Attempt != 1 || all[1].Due == nil {
		t.Errorf("got %s", r.stdout)
	}
	wantStats(t, q, 0, 0, 0)
}

// One command reads the other's output: a queue moves to another backend, byte for byte.
func TestConsumeIntoPush(t *testing.T) {
	t.Parallel()
	from, to := newURL("memory"), redisURL(t, "keyspace")
	q := openQueue(t, from)
	for i, body := range []string{"", "text \x00 \u2028 \"", "\xff\xfe\x00", `{"a": 1.0}`, `"quoted"`, "17", "{\n\t\"a\": [1, 2]\r\n}\n", ` [ ]`, `{"a":"<\u00e9\ud800>", "body":0}`, "{\"\xff\":1}", `{"a":1} x`} {
		_, err := q.Push(t.Context(), []byte(body), delayq.ID(fmt.Sprint("m", i)), delayq.Header("text", "ü\x00"), delayq.Header("raw", body))
		mustDo(t, err)
	}
	before := waiting(t, from)
	moved := delayqRun(t, "consume", from, "--idle=3s")
	r := runIn(t.Context(), strings.NewReader(moved.stdout), "push", to)
	r.wantCode(t, exitOK)
	after := waiting(t, to)
	if len(before) != 11 || len(after) != 11 {
		t.Fatalf("%d messages before, %d after\n%s%s", len(before), len(after), moved.stdout, r.stderr)
	}
	for i := range before {
		before[i].Due, after[i].Due = nil, nil // its resolution is another
		if a, b := fmt.Sprintf("%+v", readable(before[i])), fmt.Sprintf("%+v", readable(after[i])); a != b {
			t.Errorf("before %s\nafter  %s", a, b)
		}
	}
}

func TestLargestMessagesFitInALine(t *testing.T) {
	testenv.In(t, testenv.All) // it needs 3 GB with the race detector
	t.Parallel()
	for _, body := range []string{strings.Repeat("\x01", backend.MaxBody), "[" + strings.Repeat("\n", backend.MaxBody-2) + "]"} {
		m := delayq.Pending{ID: strings.Repeat("\x01", backend.MaxID), Body: []byte(body)}
		m.Headers = map[string]string{"k": strings.Repeat("\x01", backend.MaxHeaders-backend.HeaderCost-1)}
		text, err := line(waitingJSON(m))
		mustDo(t, err)
		in := jsonl.NewReader(bytes.NewReader(text), jsonl.MaxLine)
		if !in.Next() {
			t.Fatal(in.Err)
		}
		if got, err := in.Text(); err != nil || len(got) != len(text)-1 {
			t.Errorf("a body that begins with %q: got %d of %d bytes, %v", body[:2], len(got), len(text), err)
		}
	}
}

// bytes are the body's own.
func (m *messageJSON) bytes() string {
	if m.BodyBase64 != nil {
		return string(m.BodyBase64)
	}
	return string(*m.Body)
}

// readable has values where there were pointers.
func readable(m messageJSON) []string {
	return []string{m.ID, m.bytes(), fmt.Sprintf("%q", m.Headers), fmt.Sprintf("%q", m.HeadersBase64)}
}

// byBody prints its message, and exits with the status that is the message's body.
const byBody = `read body; echo "$DELAYQ_ID:$DELAYQ_ATTEMPT:$body:$DELAYQ_HEADER_X_Y:$DELAYQ_HEADERS:${DELAYQ_DUE%%T*}"; echo "complaint $body" >&2; exit $body`

func TestConsumeRunsCommands(t *testing.T) {
	t.Parallel()
	for _, url := range []string{newURL("memory"), redisURL(t, "zsetpoll")} {
		q := openQueue(t, url)
		for _, status := range []string{"0", "1", "65", "75"} {
			_, err := q.Push(t.Context(), []byte(status+"\n"), delayq.ID("m"+status), delayq.Header("x-y", "z z"))
			mustDo(t, err)
		}
		r := runOK(t, "consume", url, "--exec", "--count=4", "--retry=1h,2h", "--", "sh", "-c", byBody)
		today := time.Now().UTC().Format("2006-01-02")
		r.wantOutput(t, `m0:1:0:z z:{"x-y":"z z"}:`+today, "m75:1:75:")
		r.wantSaid(t, "complaint 65\n")
		wantStats(t, q, 2, 0, 1)
		for l, err := range q.Dead().All(t.Context()) {
			if err != nil || l.ID != "m65" || l.Reason != "message cannot be handled: exit status 65: complaint 65" {
				t.Errorf("got %+v, %v", l, err)
			}
		}
		for _, m := range waiting(t, url) {
			if wait := time.Until(*m.Due); *m.Attempts != 1 || wait < 55*time.Minute || wait > 65*time.Minute {
				t.Errorf("after its failure: %+v", m)
			}
		}
	}
}

func TestConsumeMaxAttempts(t *testing.T) {
	t.Parallel()
	url := newURL("memory")
	q := openQueue(t, url)
	push(t, q, "a")
	r := runOK(t, "consume", url, "--exec", "--max-attempts=3", "--retry=1ms", "--idle=3s", "--", "sh", "-c", "echo $DELAYQ_ATTEMPT; exit 7")
	if r.stdout != "1\n2\n3\n" {
		t.Errorf("got the attempts %q", r.stdout)
	}
	wantStats(t, q, 0, 0, 1)
}

func TestConsumeCountIsExact(t *testing.T) {
	t.Parallel()
	for _, workers := range []string{"1", "8", "100"} {
		url := newURL("memory")
		q := openQueue(t, url)
		for i := range 50 {
			push(t, q, fmt.Sprint("m", i))
		}
		r := runOK(t, "consume", url, "--count=20", "--workers="+workers)
		if n := strings.Count(r.stdout, "\n"); n != 20 {
			t.Errorf("%s workers: %d lines", workers, n)
		}
		wantStats(t, q, 0, 30, 0)
		for _, m := range waiting(t, url) {
			if *m.Attempts != 0 {
				t.Errorf("%s workers: %s was touched: %d attempts", workers, m.ID, *m.Attempts)
			}
		}
	}
}

func TestConsumeTimeout(t *testing.T) {
	t.Parallel()
	url := newURL("memory")
	q := openQueue(t, url)
	push(t, q, "a")
	runOK(t, "consume", url, "--exec", "--count=1", "--timeout=100ms", "--max-attempts=1", "--", "sh", "-c", "sleep 100 & wait")
	for l, err := range q.Dead().All(t.Context()) {
		if err != nil || !strings.HasPrefix(l.Reason, "handler took too long (100ms): ") {
			t.Errorf("got %+v, %v", l, err)
		}
	}
	wantStats(t, q, 0, 0, 1)
}

// A header that no environment can hold, and a body that the command does not read, do no harm.
func TestConsumeAwkwardMessages(t *testing.T) {
	t.Parallel()
	url := newURL("memory")
	q := openQueue(t, url)
	large := bytes.Repeat([]byte("x"), 1<<20)
	_, err := q.Push(t.Context(), large, delayq.Header("nul", "a\x00b"), delayq.Header("controls", strings.Repeat("\x01", 60_000)))
	mustDo(t, err)
	runOK(t, "consume", url, "--exec", "--count=1", "--", "sh", "-c", `test -z "$DELAYQ_HEADERS$DELAYQ_HEADER_NUL"`)
	wantStats(t, q, 0, 0, 0)
}

// Names that make one variable give it the same value each time. Values that are not UTF-8 have a
// variable only.
func TestConsumeHeadersOfOneVariable(t *testing.T) {
	t.Parallel()
	d := &delayq.Delivery{}
	d.Headers = map[string]string{"lang-x": "a", "lang_x": "b", "LANG.X": "c", "raw": "\xff"}
	for range 20 {
		vars := environment(d)
		last := ""
		for _, v := range vars {
			if value, ok := strings.CutPrefix(v, "DELAYQ_HEADER_LANG_X="); ok {
				last = value
			}
		}
		if last != "b" || !slices.Contains(vars, "DELAYQ_HEADER_RAW=\xff") || !slices.Contains(vars, `DELAYQ_HEADERS={"LANG.X":"c","lang-x":"a","lang_x":"b"}`) {
			t.Fatalf("got %q", vars)
		}
	}
}

func TestConsumeCannotWrite(t *testing.T) {
	t.Parallel()
	url := newURL("memory")
	q := openQueue(t, url)
	push(t, q, "a", "b")
	var stderr bytes.Buffer
	code := run(t.Context(), []string{"consume", url, "--retry=1h"}, nil, brokenWriter{}, &stderr)
	if code != exitOutput || !strings.Contains(stderr.String(), "writing: disk full") {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
	wantStats(t, q, 0, 2, 0)
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, fmt.Errorf("disk full") }

// A running is the program with a command that has begun to handle a message.
type running struct {
	url     string
	q       delayq.Queue
	marks   string // a directory that the command writes to
	signal  func(syscall.Signal)
	wait    func() error
	waiting func(name string) // for a file
}

func startConsuming(t *testing.T, script string, args ...string) *running {
	t.Helper()
	r := &running{url: redisURL(t, "zsetpoll"), marks: t.TempDir()}
	r.q = openQueue(t, r.url)
	push(t, r.q, "a")
	cmd := process(t, append(append([]string{"consume", r.url, "--exec", "--lease=1m"}, args...), "--", "sh", "-c", script)...)
	cmd.Env = append(cmd.Env, "MARKS="+r.marks)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	mustDo(t, cmd.Start())
	wait := sync.OnceValue(cmd.Wait)
	r.wait = wait
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = wait() })
	r.signal = func(s syscall.Signal) {
		if err := cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
	}
	r.waiting = func(name string) {
		t.Helper()
		until(t, "file "+name, func() bool {
			_, err := os.Stat(filepath.Join(r.marks, name))
			return err == nil
		}, &stderr)
	}
	r.waiting("begun")
	return r
}

// waitsForGo handles a message for as long as the test wants.
const waitsForGo = `echo $$ > $MARKS/pid; touch $MARKS/begun; while ! test -e $MARKS/go; do sleep 0.02; done; touch $MARKS/done`

func TestFirstSignalLetsCommandsFinish(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		r := startConsuming(t, waitsForGo)
		r.signal(s)
		push(t, r.q, "late")
		mustDo(t, os.WriteFile(filepath.Join(r.marks, "go"), nil, 0o600))
		if err := r.wait(); err != nil {
			t.Errorf("%v: %v", s, err)
		}
		if _, err := os.Stat(filepath.Join(r.marks, "done")); err != nil {
			t.Errorf("the command did not finish: %v", err)
		}
		stats, err := r.q.Stats(t.Context())
		if err != nil || stats.InFlight != 0 || stats.Dead != 0 || stats.Scheduled != 0 || stats.Ready > 1 {
			t.Errorf("got %+v, %v", stats, err)
		}
	}
}

func TestDrainEndsCommands(t *testing.T) {
	t.Parallel()
	r := startConsuming(t, waitsForGo, "--drain=100ms")
	r.signal(syscall.SIGTERM)
	if err := r.wait(); err != nil {
		t.Errorf("all were stopped in time; yet %v", err)
	}
	r.commandIsGone(t)
	if all := waiting(t, r.url); len(all) != 1 || *all[0].Attempts != 0 {
		t.Errorf("got %+v, want the message back, untouched", all)
	}
}

// A command that the end of the drain tells to stop, and that finishes, is done.
func TestCommandFinishesAfterDrain(t *testing.T) {
	t.Parallel()
	r := startConsuming(t, `trap "exit 0" TERM; `+waitsForGo, "--drain=100ms")
	r.waiting("begun")
	r.signal(syscall.SIGTERM)
	if err := r.wait(); err != nil {
		t.Error(err)
	}
	wantStats(t, r.q, 0, 0, 0)
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	r := startConsuming(t, "trap '' TERM INT; "+waitsForGo)
	ended := make(chan error, 1)
	go func() { ended <- r.wait() }()
	for {
		r.signal(syscall.SIGINT) // again, since two at once may come as one
		select {
		case err := <-ended:
			if err == nil || err.Error() != fmt.Sprintf("exit status %d", exitInterrupted) {
				t.Errorf("got %v", err)
			}
			r.commandIsGone(t)
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// commandIsGone waits for the end of the command's process.
func (r *running) commandIsGone(t *testing.T) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(r.marks, "pid"))
	mustDo(t, err)
	var pid int
	_, err = fmt.Sscan(string(raw), &pid)
	mustDo(t, err)
	awaitEnd(t, pid)
}

// awaitEnd returns when the process has ended. A process without a waiting parent stays as a
// zombie.
func awaitEnd(t *testing.T, pid int) {
	t.Helper()
	until(t, fmt.Sprintf("end of process %d", pid), func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || err == nil && strings.Contains(string(stat), ") Z ")
	})
}
