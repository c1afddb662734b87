//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/memory"
	"github.com/delayq/delayq/sqlite"
)

// served is the program's server in a process of its own.
type served struct {
	cmd  *exec.Cmd
	said *safeBuffer
	url  string
}

var servingAt = regexp.MustCompile(`on (https?://\S+);`)

// startServe starts the server on a free port, with its file in a directory, unless arguments say
// otherwise.
func startServe(t *testing.T, dir string, args ...string) *served {
	t.Helper()
	s := &served{cmd: process(t, append([]string{"serve", "--listen=127.0.0.1:0"}, args...)...), said: new(safeBuffer)}
	s.cmd.Dir, s.cmd.Stderr = dir, s.said
	mustDo(t, s.cmd.Start())
	t.Cleanup(func() { _ = s.cmd.Process.Kill(); _ = s.cmd.Wait() })
	until(t, "server", func() bool { return servingAt.MatchString(s.said.String()) }, s.said)
	s.url = servingAt.FindStringSubmatch(s.said.String())[1]
	return s
}

// stop ends the server by a signal, and wants it to end in good order.
func (s *served) stop(t *testing.T) {
	t.Helper()
	mustDo(t, s.cmd.Process.Signal(syscall.SIGTERM))
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, s.said)
	}
}

const servePage = "../../docs/serve.md"

// pageLine matches the lines of the page's blocks that a user types, and the output below each.
var pageLine = regexp.MustCompile(`(?m)^    \$ (.*)\n((?:    [^$\s].*\n)*)`)

// TestPageServe types the commands of docs/serve.md, one after another, and compares what they
// print.
func TestPageServe(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	raw, err := os.ReadFile(servePage)
	mustDo(t, err)
	testenv.Shell(t, "jq")
	testenv.Shell(t, "curl")
	dir := t.TempDir()
	s := startServe(t, dir)
	address := strings.TrimPrefix(s.url, "http://")
	var script, want strings.Builder
	for _, m := range pageLine.FindAllStringSubmatch(string(raw), -1) {
		fmt.Fprintf(&script, "echo '$ '%s\n%s\n", shellQuoted(m[1]), strings.ReplaceAll(m[1], "localhost:8090", address))
		want.WriteString("$ " + m[1] + "\n" + strings.ReplaceAll(m[2], "    ", ""))
		if strings.Contains(m[1], "--json") && !strings.Contains(m[1], "|") && !strings.Contains(m[1], ">") && m[2] == "" {
			t.Errorf("the page does not show what %s prints", m[1])
		}
	}
	if n := strings.Count(want.String(), "curl"); n < 20 {
		t.Errorf("the page has %d lines with curl", n)
	}
	cmd := exec.CommandContext(t.Context(), testenv.Shell(t, "bash"), "-eo", "pipefail", "-c", script.String())
	bin := builtCommand(t)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		t.Errorf("%v: %s", err, log.String())
	}
	if out.String() != want.String() {
		t.Errorf("the page differs from what its commands print:\n%s\nthe page has:\n%s", out.String(), want.String())
	}
	s.stop(t)
}

func shellQuoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// Clients in other languages push and receive.
func TestExampleClients(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	s := startServe(t, t.TempDir())
	t.Run("python", func(t *testing.T) {
		t.Parallel()
		cmd := exec.CommandContext(t.Context(), testenv.Shell(t, "python3"), "-B", "../../examples/clients/python/example.py", s.url, "python")
		wantOutputOf(t, cmd, "push: duplicate\nbytes b'\\xff\\x00' {} attempt 1\ntext b'gr\\xc3\\xbc\\xc3\\x9fe' {'lang': 'de'} attempt 2\n")
	})
	t.Run("python worker", func(t *testing.T) {
		t.Parallel()
		cmd := exec.CommandContext(t.Context(), testenv.Shell(t, "python3"), "-B", "-c", outlivesItsLease, s.url)
		cmd.Dir = "../../examples/clients/python"
		wantOutputOf(t, cmd, "slow 1\nslow 2\nfast 1\n")
	})
	t.Run("python after failures", func(t *testing.T) {
		t.Parallel()
		cmd := exec.CommandContext(t.Context(), testenv.Shell(t, "python3"), "-B", "-c", afterFailures)
		cmd.Dir = "../../examples/clients/python"
		wantOutputOf(t, cmd, "push: duplicate\npush: a\nwork: closed\n")
	})
	t.Run("java", func(t *testing.T) {
		t.Parallel()
		java, err := testenv.Java()
		testenv.Require(t, err)
		classes := t.TempDir()
		files, err := filepath.Glob("../../examples/clients/java/*.java")
		mustDo(t, err)
		compiler := filepath.Join(filepath.Dir(java), "javac")
		wantOutputOf(t, exec.CommandContext(t.Context(), compiler, append([]string{"-d", classes}, files...)...), "")
		cmd := exec.CommandContext(t.Context(), java, "-cp", classes, "Example", s.url, "java")
		wantOutputOf(t, cmd, "push: duplicate\nbytes of 2 bytes, attempt 1\ntext of 9 bytes, attempt 2\n")

		// Headers with the names of a delivery's fields, and a body that is long.
		odd, err := json.Marshal(map[string]any{
			"body":    strings.Repeat(`"\`+"\n", 300_000),
			"headers": map[string]string{"id": "x", "lease": `{"id":"}`, "attempt": "7", "body_base64": "eA=="},
		})
		mustDo(t, err)
		for range 2 {
			reply, err := http.Post(s.url+"/v1/queues/odd/messages", "application/json", bytes.NewReader(odd))
			mustDo(t, err)
			mustDo(t, reply.Body.Close())
		}
		cmd = exec.CommandContext(t.Context(), java, "-cp", classes, "Example", s.url, "odd")
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Count(string(out), " of 900000 bytes, attempt 1\n") != 2 {
			t.Errorf("%v: got %s", err, out)
		}
	})
}

// A worker in Python whose first message takes longer than its lease.
const outlivesItsLease = `
import sys, time
from delayq import Queue
queue = Queue(sys.argv[1], "slow")
queue.push(b"", id="slow")
queue.push(b"", id="fast")
def handle(message):
    print(message.id, message.attempt)
    if message.id == "fast":
        sys.exit()
    if message.attempt == 1:
        time.sleep(4)
queue.work(handle, lease_for="3s")
`

// A client in Python whose server fails in several ways.
const afterFailures = `
import io, json, urllib.error, urllib.request
from delayq import Problem, Queue
def replies(*all):
    rest = list(all)
    def urlopen(request, timeout):
        if rest[0] is None:
            rest.pop(0)
            raise OSError("broken")
        status, code = rest.pop(0)
        body = io.BytesIO(json.dumps({"code": code}).encode())
        raise urllib.error.HTTPError(request.full_url, status, code, {}, body)
    urllib.request.urlopen = urlopen
queue = Queue("http://localhost", "q")
def push():
    try:
        print("push:", queue.push(b"", id="a"))
    except Problem as problem:
        print("push:", problem.code)
replies((503, "unavailable"), (409, "duplicate"))
push()
replies(None, (503, "unavailable"), (409, "duplicate"))
push()
replies((504, "outcome-unknown"), (504, "unconfirmed"), (500, "internal"), (400, "closed"))
try:
    queue.work(print)
except Problem as problem:
    print("work:", problem.code)
`

// wantOutputOf compares what a program prints.
func wantOutputOf(t *testing.T, cmd *exec.Cmd, want string) {
	t.Helper()
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil || string(out) != want {
		t.Errorf("%v: got %s%s\nwant %s", err, out, log.String(), want)
	}
}

// The server listens on other addresses only where the user says who may come.
func TestServeWrongUsage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad")
	mustDo(t, os.WriteFile(bad, []byte("a b c\n"), 0o600))
	blank := filepath.Join(dir, "blank")
	mustDo(t, os.WriteFile(blank, []byte("\uFEFF\n \r\n"), 0o600))
	for args, want := range map[string]string{
		"--listen=0.0.0.0:0":                                  "needs --tokens, or --no-tokens",
		"--listen=:0":                                         "needs --tokens, or --no-tokens",
		"--listen=8090":                                       "ADDRESS:PORT",
		"--tokens=x --no-tokens":                              "one of them",
		"--tls-cert=x":                                        "both or neither",
		"--tls-cert=x --tls-key=y":                            "--tls-cert and --tls-key",
		"--tokens=" + bad:                                     "64 hexadecimal digits",
		"--tokens=" + filepath.Join(dir, "nosuch"):            "no such file",
		"--max-batch=0":                                       "allowed is 1 to 10000",
		"--url=redis://127.0.0.1:1":                           "connection refused",
		"--max-wait=1ms":                                      "allowed is 1s to 10m",
		"--url=nosuch://x/q":                                  "unknown URL scheme",
		"--dead-max-age=-1s":                                  "DeadLetterRetention",
		"--webhook=mail":                                      "QUEUE=URL",
		"--webhook=mail=ftp://x":                              "an absolute http or https URL",
		"--webhook=a=http://x --webhook=a=http://y":           "one of each queue",
		"--webhook-allow=http://x":                            "QUEUE=URL",
		"--webhook=a=http://x --webhook-timeout=0":            "allowed is 1s to 10m",
		"--webhook=a=http://x --webhook-workers=0":            "Workers",
		"--webhook=a=http://x --webhook-secret-file=" + bad:   "24 bytes or more",
		"--webhook=a=http://x --webhook-secret-file=" + blank: "expected a secret on each line",
		"--webhook=a=http://x --webhook-secret-file=":         "--webhook-secret-file: open : no such file",
		"--webhook-secret-file=" + bad:                        "needs --webhook or --webhook-allow",
		"--tokens=":                                           `--tokens: "": allowed is a text that is not empty`,
		"--tls-cert= --tls-key=":                              "allowed is a text that is not empty",
	} {
		r := delayqRun(t, append([]string{"serve", "--url=memory:///x"}, strings.Fields(args)...)...)
		r.wantCode(t, exitUnusable)
		r.wantSaid(t, want)
	}
	delayqRun(t, "token", "a", "write:q").wantSaid(t, "RIGHT is push, consume, read or admin")
	delayqRun(t, "token", "a b", "push:q").wantSaid(t, "allowed is a word")
}

// A server with tokens and a certificate serves those that have a token.
func TestServeTokens(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "tokens")
	token := strings.TrimSpace(runOK(t, "token", "billing", "push:mail*", "read:mail", "--file="+file).stdout)
	if raw, err := os.ReadFile(file); err != nil || strings.Contains(string(raw), token) {
		t.Errorf("the file has %s, %v", raw, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has %v, %v", info.Mode(), err)
	}
	s := startServe(t, dir, "--tokens="+file, "--url=memory:///any")
	queue := "delayq+http://" + token + "@" + strings.TrimPrefix(s.url, "http://") + "/mail"
	runOK(t, "push", queue, "hello", "--id=a")
	runOK(t, "stats", queue)
	r := delayqRun(t, "purge", queue, "--yes")
	r.wantSaid(t, "needed is the right admin")
	if strings.Contains(r.stderr+r.stdout+s.said.String(), token) {
		t.Error("the token is shown")
	}
	delayqRun(t, "stats", strings.Replace(queue, token, "wrong", 1)).wantSaid(t, "the token is not known")
	s.stop(t)
}

// A signal ends a receive that waits with an empty reply, and the program in good order.
func TestServeStops(t *testing.T) {
	t.Parallel()
	s := startServe(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got := make(chan string, 1)
	go func() {
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/queues/mail/receive", strings.NewReader(`{"wait": "1m"}`))
		r.Header.Set("Content-Type", "application/json")
		w, err := http.DefaultClient.Do(r)
		if err != nil {
			got <- err.Error()
			return
		}
		defer func() { _ = w.Body.Close() }()
		body, _ := io.ReadAll(w.Body)
		got <- fmt.Sprint(w.StatusCode, string(body))
	}()
	until(t, "receive that waits", func() bool {
		w, err := http.Get(s.url + "/metrics")
		if err != nil {
			return false
		}
		defer func() { _ = w.Body.Close() }()
		body, _ := io.ReadAll(w.Body)
		return bytes.Contains(body, []byte("delayq_server_waiting_receives 1\n"))
	})
	s.stop(t)
	if reply := <-got; reply != "200{\"messages\":[]}\n" {
		t.Errorf("got %s", reply)
	}
	if c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://")); err == nil {
		_ = c.Close()
		t.Error("it still listens")
	}
}

// The server posts messages to URLs, tries again, and lets a running request end.
func TestServeWebhooks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	mustDo(t, os.WriteFile(secret, []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"), 0o600))
	got, goOn := make(chan string, 10), make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- fmt.Sprintf("%s %s attempt %s signed %t", r.URL, body, r.Header.Get("delayq-attempt"), strings.HasPrefix(r.Header.Get("webhook-signature"), "v1,"))
		switch {
		case string(body) == "busy" && r.Header.Get("delayq-attempt") == "1":
			w.WriteHeader(http.StatusServiceUnavailable)
		case string(body) == "slow":
			<-goOn
		}
	}))
	defer receiver.Close()
	s := startServe(t, dir, "--webhook=mail="+receiver.URL+"/mail", "--webhook-allow=notes="+receiver.URL+"/notes", "--webhook-secret-file=mail="+secret, "--webhook-retry=0s")
	mail, notes := "delayq+"+s.url+"/mail", "delayq+"+s.url+"/notes"
	want := func(texts ...string) {
		t.Helper()
		for _, text := range texts {
			select {
			case request := <-got:
				if request != text {
					t.Fatalf("posted: %s; want %s", request, text)
				}
			case <-time.After(time.Minute):
				t.Fatalf("not posted: %s", text)
			}
		}
	}
	runOK(t, "push", mail, "busy", "--after=50ms")
	want("/mail busy attempt 1 signed true", "/mail busy attempt 2 signed true")
	runOK(t, "push", notes, "one", "--header=webhook-url="+receiver.URL+"/notes/17")
	want("/notes/17 one attempt 1 signed false") // the secret is of the queue mail
	runOK(t, "push", notes, "two", "--header=webhook-url="+receiver.URL+"/admin", "--id=elsewhere")
	until(t, "dead letter", func() bool { return strings.Contains(delayqRun(t, "dead", "list", notes).stdout, "elsewhere") })
	runOK(t, "push", mail, "slow")
	want("/mail slow attempt 1 signed true")
	mustDo(t, s.cmd.Process.Signal(syscall.SIGTERM))
	until(t, "end of the listener", func() bool {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		return err != nil || c.Close() != nil
	})
	close(goOn)
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, s.said)
	}
	s = startServe(t, dir)
	if out := runOK(t, "stats", "delayq+"+s.url+"/mail", "--json").stdout; !strings.Contains(out, `"in_flight":0`) || !strings.Contains(out, `"ready":0`) {
		t.Errorf("after the end: %s", out)
	}
	s.stop(t)
}

// What a receiver says unasked is not on standard error.
func TestServeWebhookTalks(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer close(ended)
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		time.Sleep(50 * time.Millisecond) // the client takes the reply; if it is slower, it discards the rest with the reply, and the test passes too
		_, _ = io.WriteString(conn, "something more")
		_, _ = io.Copy(io.Discard, conn) // until the server closes it
	}))
	defer receiver.Close()
	s := startServe(t, t.TempDir(), "--webhook=mail="+receiver.URL)
	runOK(t, "push", "delayq+"+s.url+"/mail", "one")
	<-ended
	s.stop(t)
	if said := s.said.String(); strings.Contains(said, "something more") {
		t.Error(said)
	}
}

// The secrets of a file are its lines, whatever wrote it.
func TestSecretsOfFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secrets")
	mustDo(t, os.WriteFile(file, []byte("\uFEFFwhsec_one\r\n\r\n two\n\n"), 0o600))
	if got, err := readSecrets(file); err != nil || !slices.Equal(got, []string{"whsec_one", "two"}) {
		t.Errorf("got %q, %v", got, err)
	}
}

// uncounted is a store that does not count attempts, as RabbitMQ with classic queues.
type uncounted struct{ backend.Backend }

func (u uncounted) Traits() backend.Traits {
	traits := u.Backend.Traits()
	traits.Lacks = traits.Lacks.With(delayq.CountingAttempts)
	return traits
}

// Without a limit of attempts, messages are posted from a store that does not count them too.
func TestServeWebhooksUncounted(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	log, store := delayq.WithLogger(slog.New(slog.DiscardHandler)), uncounted{memory.New()}
	flags := webhookFlags{To: []string{"mail=http://127.0.0.1:1"}, Workers: 1, Timeout: time.Minute}
	posts, shut, err := flags.open(ctx, store, log)
	mustDo(t, err)
	stop()
	mustDo(t, posts[0](ctx))
	mustDo(t, shut())
	three := 3
	flags.MaxAttempts = &three
	if _, _, err := flags.open(t.Context(), store, log); !errors.Is(err, delayq.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
}

// trimmed is a store that notes how its dead letters are trimmed.
type trimmed struct {
	backend.Backend
	by chan backend.Retention
}

func (t trimmed) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	q, err := t.Backend.Open(ctx, name, o)
	return trimmedQueue{q, t.by}, err
}

type trimmedQueue struct {
	backend.Queue
	by chan backend.Retention
}

func (q trimmedQueue) TrimDead(ctx context.Context, r backend.Retention) (int, bool, error) {
	select {
	case q.by <- r:
	default:
	}
	return q.Queue.TrimDead(ctx, r)
}

// The webhook of a queue keeps as many dead letters as the server does.
func TestServeWebhooksRetention(t *testing.T) {
	t.Parallel()
	file := sqlite.New(filepath.Join(t.TempDir(), "delay.db"))
	t.Cleanup(func() { mustDo(t, file.Close()) })
	store := trimmed{file, make(chan backend.Retention, 1)}
	flags := webhookFlags{To: []string{"mail=http://127.0.0.1:1"}, Workers: 1, Timeout: time.Minute}
	_, shut, err := flags.open(t.Context(), store, delayq.WithLogger(slog.New(slog.DiscardHandler)), delayq.DeadLetterRetention(time.Hour, 17))
	mustDo(t, err)
	defer func() { mustDo(t, shut()) }()
	select {
	case r := <-store.by:
		if r.MaxAge != time.Hour || r.MaxCount != 17 {
			t.Errorf("trimmed by %+v", r)
		}
	case <-time.After(5 * time.Minute):
		t.Error("nothing was trimmed")
	}
}
