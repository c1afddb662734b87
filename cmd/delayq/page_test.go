//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/internal/testenv"
)

// pageCommand matches the pages' commands: a line of an indented block, with or without a prompt.
var pageCommand = regexp.MustCompile(`(?m)^    (?:\$ )?((?:delayq|jq|source) .*?)(?: {2,}#.*)?$`)

// pageScript matches the handler that is shown.
var pageScript = regexp.MustCompile(`(?m)^    #!/bin/sh\n(?:    .*\n)+`)

// A reader tries a command in a directory of its own, with a queue on a real Redis.
type reader struct {
	dir, page string
	env       []string

	queue, old, new delayq.Queue
}

// A pageTest is a command of a page, exactly as it is written there.
type pageTest struct {
	given func(t *testing.T, r *reader)                // the state that the page assumes
	until func(r *reader, stdout string) bool          // ends a command that goes on for ever
	then  func(t *testing.T, r *reader, stdout string) // the result that the page promises
	shell string                                       // bash, if empty
	code  int                                          // of the pipeline
}

// pageTests has every command of the page about the command line, above the reference.
var pageTests = map[string]pageTest{
	`delayq push "$QUEUE" "renew the licence" --after=720h --id=licence-17`:                           {then: prints("licence-17\n")},
	`delayq push "$QUEUE" '{"order": 17}' --at=2030-01-31T18:00:00Z --header=lang=en --type=reminder`: {then: holds(1, 0)},
	`delayq push "$QUEUE" "send the present" --at="2030-12-24 09:00"`:                                 {then: holds(1, 0)},
	`delayq push "$QUEUE" "send the present" --at="24 Dec 2030 09:00 Europe/Berlin"`:                  {then: holds(1, 0)},
	`delayq push "$QUEUE" "water the plants" --at="tomorrow 9:00"`:                                    {then: holds(1, 0)},
	`delayq push "$QUEUE" "send the present" --at=2030-12-24T09:00:00+01:00`:                          {then: holds(1, 0)},
	`delayq push "$QUEUE" < reminders.jsonl > ids.txt`: {
		given: hasGiven("reminders.jsonl", `{"id": "a", "after": "1h", "body": "x"}`+"\n"+`{"id": "b", "body": "y"}`+"\n"),
		then:  all(holds(1, 1), hasFile("ids.txt", "a\nb\n")),
	},
	`jq -c '{id: .order, after: "30m", body: .}' orders.json | delayq push "$QUEUE"`: {
		given: hasGiven("orders.json", `{"order": "17", "total": 3}`+"\n"+`{"order": "18", "total": 4}`),
		then:  all(prints("17\n18\n"), holds(2, 0)),
	},
	`delayq consume "$QUEUE"`: {
		given: due("a"), until: printed(`"id":"a"`), then: holds(0, 0),
	},
	`delayq consume "$QUEUE" | head -1`: {
		given: due("a", "b", "c"), then: all(contains(`"id":"a"`), holds(0, 2)), code: exitPipe,
	},
	`delayq consume "$QUEUE" --count=10 --idle=5s`: {
		given: due("0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"), then: holds(0, 1),
	},
	`delayq consume "$OLD" --idle=5s | tee moved.jsonl | delayq push "$NEW"`: {
		given: func(t *testing.T, r *reader) { push(t, r.old, "a") },
		then: func(t *testing.T, r *reader, _ string) {
			wantStats(t, r.old, 0, 0, 0)
			wantStats(t, r.new, 0, 1, 0)
		},
	},
	`delayq consume "$QUEUE" --exec --workers=8 --timeout=1m --retry=10s,1m,1h --max-attempts=5 -- ./remind.sh`: {
		given: both(remindScript, due("ann@example.org")),
		until: func(r *reader, _ string) bool {
			sent, _ := os.ReadFile(filepath.Join(r.dir, "sent"))
			return string(sent) == "to body of ann@example.org: remember\n"
		},
		then: holds(0, 0),
	},
	`delayq stats "$QUEUE"`:         {given: due("a"), then: contains("ready                   1\n")},
	`delayq stats "$QUEUE" --watch`: {given: due("a"), until: printed("ready")},
	`delayq stats "$QUEUE" --watch --json --every=10s >> stats.jsonl`: {until: func(r *reader, _ string) bool {
		stats, _ := os.ReadFile(filepath.Join(r.dir, "stats.jsonl"))
		return bytes.Contains(stats, []byte(`"ready":0`))
	}},
	`delayq peek "$QUEUE" --limit=3`: {given: due("a", "b", "c", "d"), then: contains("c")},
	`delayq peek "$QUEUE" --limit=100000 --json | jq -r 'select(.headers.lang == "en") | .id'`: {
		given: func(t *testing.T, r *reader) {
			push(t, r.queue, "other")
			_, err := r.queue.Push(t.Context(), nil, delayq.ID("english"), delayq.Header("lang", "en"))
			mustDo(t, err)
		},
		then: prints("english\n"),
	},
	`delayq get "$QUEUE" licence-17`:                                     {given: later("licence-17"), then: contains("licence-17  scheduled\n")},
	`delayq cancel "$QUEUE" licence-17`:                                  {given: later("licence-17"), then: holds(0, 0)},
	`delayq reschedule "$QUEUE" licence-17 licence-18 --after=1h`:        {given: due("licence-17", "licence-18"), then: holds(2, 0)},
	`delayq push "$QUEUE" "code 4711" --expires-after=10m`:               {then: holds(0, 1)},
	`delayq push "$QUEUE" "refund 17" --attempts=3 --handler-timeout=1m`: {then: holds(0, 1)},
	`delayq dead delete "$QUEUE" --older-than=720h`: {
		given: deadLetters("new"), then: func(t *testing.T, r *reader, _ string) { wantStats(t, r.queue, 0, 0, 1) },
	},
	`delayq dead redrive "$QUEUE" --type=mail --reason="mail server"`: {
		given: func(t *testing.T, r *reader) {
			_, err := r.queue.Push(t.Context(), nil, delayq.Type("mail"))
			mustDo(t, err)
			d, err := r.queue.Receive(t.Context())
			mustDo(t, err)
			mustDo(t, d.DeadLetter(t.Context(), "mail server is down"))
			makeDead(t, r.queue, "other")
		},
		then: func(t *testing.T, r *reader, _ string) { wantStats(t, r.queue, 0, 1, 1) },
	},
	`delayq peek "$QUEUE" --json | jq -r .id | xargs delayq cancel "$QUEUE"`: {
		given: later("a", "b"), then: holds(0, 0),
	},
	`delayq push "$QUEUE" --at="tomorrow 9:00" --spread=10m < newsletters.jsonl`: {
		given: hasGiven("newsletters.jsonl", `{"id": "a", "body": "x"}`+"\n"+`{"id": "b", "body": "y"}`+"\n"),
		then:  all(prints("a\nb\n"), holds(2, 0)),
	},
	`delayq queues "$QUEUE"`: {
		given: due("a"), then: func(t *testing.T, r *reader, out string) {
			at := slices.IndexFunc(r.env, func(v string) bool { return strings.HasPrefix(v, "QUEUE=") })
			contains(path.Base(r.env[at])+"\n")(t, r, out)
		},
	},
	`delayq dead trim "$QUEUE" --max-count=10000`: {
		given: deadLetters("d"), then: func(t *testing.T, r *reader, _ string) { wantStats(t, r.queue, 0, 0, 1) },
	},
	`delayq pause "$QUEUE" --for=2h`: {then: func(t *testing.T, r *reader, _ string) { wantPaused(t, r.queue, true) }},
	`delayq resume "$QUEUE"`: {
		given: func(t *testing.T, r *reader) { mustDo(t, r.queue.PauseAll(t.Context())) },
		then:  func(t *testing.T, r *reader, _ string) { wantPaused(t, r.queue, false) },
	},
	`delayq dashboard "$QUEUE" --listen=localhost:0 --write`: {given: due("a"), until: printed("/ (with changes)\n")},
	`delayq dead list "$QUEUE"`:                              {given: deadLetters("d"), then: contains("reason of d")},
	`delayq dead redrive "$QUEUE" --all`:                     {given: deadLetters("d", "e"), then: holds(0, 2)},
	`delayq dead delete "$QUEUE" 01J8XYZ…`:                   {given: deadLetters("01J8XYZ…"), then: holds(0, 0)},
	`delayq doctor "$QUEUE"`:                                 {given: durableServer, then: contains("ok        version         Redis ")},
	`delayq verify "$QUEUE"`:                                 {then: contains("0 broken")},
	`delayq verify "$QUEUE" --run='^(never-early|lease)' --slack=3s --json | jq -r 'select(.verdict == "broken") | .check'`: {then: prints("")},
	`source <(delayq completion bash)`: {then: prints("")},
	`delayq completion fish | source`:  {shell: "fish", then: prints("")},
}

func wantPaused(t *testing.T, q delayq.Queue, want bool) {
	t.Helper()
	if s, err := q.Stats(t.Context()); err != nil || s.Paused != want {
		t.Errorf("paused: %v, %v; want %v", s.Paused, err, want)
	}
}

// Each command that a page shows gives the promised result when typed as written.
func TestPageCommands(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	raw, err := os.ReadFile(commandsPage)
	mustDo(t, err)
	page, _, _ := strings.Cut(string(raw), from)
	bin := builtCommand(t)
	var shown []string
	for _, m := range pageCommand.FindAllStringSubmatch(page, -1) {
		command := m[1]
		shown = append(shown, command)
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			test, known := pageTests[command]
			if !known {
				t.Fatal("no test runs this command: give it an entry in pageTests")
			}
			newReader(t, page, bin).try(t, command, test)
		})
	}
	for command := range pageTests {
		if !slices.Contains(shown, command) {
			t.Errorf("no page shows %s", command)
		}
	}
}

// builtCommand returns a directory with the program as a user builds it.
func builtCommand(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "delayq"), ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

func newReader(t *testing.T, page, bin string) *reader {
	t.Helper()
	r := &reader{dir: t.TempDir(), page: page}
	dirs := strings.Join([]string{r.dir, bin, os.Getenv("PATH")}, string(os.PathListSeparator))
	r.env = append(os.Environ(), "PATH="+dirs, "HOME="+r.dir)
	for name, q := range map[string]*delayq.Queue{"QUEUE": &r.queue, "OLD": &r.old, "NEW": &r.new} {
		url := redisURL(t, "zsetpoll")
		*q = openQueue(t, url)
		r.env = append(r.env, name+"="+url)
	}
	testenv.Shell(t, "jq")
	return r
}

func (r *reader) try(t *testing.T, command string, test pageTest) {
	t.Helper()
	if test.given != nil {
		test.given(t, r)
	}
	args := []string{"-c", command}
	if test.shell == "" {
		test.shell, args = "bash", append([]string{"-o", "pipefail"}, args...)
	}
	cmd := exec.CommandContext(t.Context(), testenv.Shell(t, test.shell), args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = r.dir, r.env, &syscall.SysProcAttr{Setpgid: true}
	var stdout, stderr safeBuffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	mustDo(t, cmd.Start())
	if test.until != nil {
		r.interrupt(t, cmd, test.until, &stdout)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != test.code {
		t.Fatalf("%v: %s%s", err, stdout.String(), stderr.String())
	}
	if test.then != nil {
		test.then(t, r, stdout.String())
	}
}

// interrupt is Ctrl-C, once the reader has seen enough.
func (r *reader) interrupt(t *testing.T, cmd *exec.Cmd, enough func(*reader, string) bool, stdout *safeBuffer) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !enough(r, stdout.String()) && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond) // the condition ends the wait
	}
	if !enough(r, stdout.String()) {
		t.Errorf("a minute shows no more than: %s", stdout.String())
	}
	mustDo(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGINT))
}

func due(ids ...string) func(*testing.T, *reader) {
	return func(t *testing.T, r *reader) { push(t, r.queue, ids...) }
}

func later(ids ...string) func(*testing.T, *reader) {
	return func(t *testing.T, r *reader) { pushLater(t, r.queue, ids...) }
}

func deadLetters(ids ...string) func(*testing.T, *reader) {
	return func(t *testing.T, r *reader) { makeDead(t, r.queue, ids...) }
}

func hasGiven(name, text string) func(*testing.T, *reader) {
	return func(t *testing.T, r *reader) { r.write(t, name, text) }
}

func (r *reader) write(t *testing.T, name, text string) {
	t.Helper()
	mustDo(t, os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o700))
}

// remindScript is the page's script, on a machine that records sent mail.
func remindScript(t *testing.T, r *reader) {
	script := pageScript.FindString(r.page)
	if !strings.Contains(script, "remind.sh") {
		t.Fatal("the page shows no remind.sh")
	}
	r.write(t, "remind.sh", strings.ReplaceAll(script, "\n    ", "\n")[len("    "):])
	r.write(t, "reminder.txt", "remember\n")
	r.write(t, "sendmail", "#!/bin/sh\necho \"to $1: $(cat)\" >> sent\n")
}

func prints(want string) func(*testing.T, *reader, string) {
	return func(t *testing.T, _ *reader, got string) {
		if got != want {
			t.Errorf("it prints %q, want %q", got, want)
		}
	}
}

func contains(want string) func(*testing.T, *reader, string) {
	return func(t *testing.T, _ *reader, got string) {
		if !strings.Contains(got, want) {
			t.Errorf("it prints %q, without %q", got, want)
		}
	}
}

// durableServer gives the reader a server that keeps its data.
func durableServer(t *testing.T, r *reader) {
	r.env = append(r.env, "QUEUE="+urlOf(testenv.Redis(t, testenv.AOF()), "zsetpoll"))
}

func printed(want string) func(*reader, string) bool {
	return func(_ *reader, got string) bool { return strings.Contains(got, want) }
}

// holds checks the queue's counts.
func holds(scheduled, ready int64) func(*testing.T, *reader, string) {
	return func(t *testing.T, r *reader, _ string) { wantStats(t, r.queue, scheduled, ready, 0) }
}

func hasFile(name, want string) func(*testing.T, *reader, string) {
	return func(t *testing.T, r *reader, _ string) {
		got, err := os.ReadFile(filepath.Join(r.dir, name))
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
}

func all(checks ...func(*testing.T, *reader, string)) func(*testing.T, *reader, string) {
	return func(t *testing.T, r *reader, stdout string) {
		for _, check := range checks {
			check(t, r, stdout)
		}
	}
}

func both(givens ...func(*testing.T, *reader)) func(*testing.T, *reader) {
	return func(t *testing.T, r *reader) {
		for _, given := range givens {
			given(t, r)
		}
	}
}
