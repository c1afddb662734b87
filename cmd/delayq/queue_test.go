package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
)

// everyBackend is a queue of each kind that can be looked at from several processes, and memory.
func everyBackend(t *testing.T) []string {
	t.Helper()
	return []string{newURL("memory"), redisURL(t, "zsetpoll"), redisURL(t, "keyspace"), redisURL(t, "redisson") + "?codec=envelope"}
}

func schedule(t *testing.T, q delayq.Queue, n int) {
	t.Helper()
	for i := range n {
		_, err := q.Push(t.Context(), []byte(fmt.Sprint("body ", i)), delayq.ID(fmt.Sprint("m", i)), delayq.After(time.Hour+time.Duration(i)*time.Second))
		mustDo(t, err)
	}
}

func pushLater(t *testing.T, q delayq.Queue, ids ...string) {
	t.Helper()
	for _, id := range ids {
		_, err := q.Push(t.Context(), nil, delayq.ID(id), delayq.After(time.Hour))
		mustDo(t, err)
	}
}

// makeDead makes dead letters of new messages.
func makeDead(t *testing.T, q delayq.Queue, ids ...string) {
	t.Helper()
	for _, id := range ids {
		push(t, q, id)
		d, err := q.Receive(t.Context())
		if err == nil {
			err = d.DeadLetter(t.Context(), "reason of "+id+"\nstack")
		}
		mustDo(t, err)
	}
}

func TestStats(t *testing.T) {
	t.Parallel()
	for _, url := range everyBackend(t) {
		q := openQueue(t, url)
		r := delayqRun(t, "stats", url)
		r.wantOutput(t, "scheduled               0\n", "head due     -\n", "oldest ready 0s\n", "due in 1w               0\n")
		schedule(t, q, 3)
		makeDead(t, q, "d")
		push(t, q, "now")
		r = runOK(t, "stats", url)
		r.wantOutput(t, "scheduled               3\n", "ready                   1\n", "dead                    1\n", "in flight               0\n", " ago)\n", "due in 1m               0\n")
		r = delayqRun(t, "stats", url, "--json")
		var s statsJSON
		r.decode(t, &s)
		if s.Scheduled != 3 || s.Ready != 1 || s.Dead != 1 || s.HeadDue == nil || time.Since(*s.HeadDue) < 0 || s.OldestReady == nil || *s.OldestReady < 0 ||
			len(s.Due) != len(backend.DueLabels()) || s.Due["1h"]+s.Due["6h"] != 3 {
			t.Errorf("got %+v", s)
		}
	}
}

func TestQueues(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"zsetpoll", "redisson"} {
		url := urlOf(testenv.Redis(t, testenv.Private()), scheme)
		runOK(t, "push", url, "body", "--after=1h")
		runOK(t, "queues", url).wantOutput(t, "orders\n")
		runOK(t, "queues", url, "--json").wantOutput(t, "{\"queue\":\"orders\"}\n")
	}
}

func TestReshard(t *testing.T) {
	t.Parallel()
	url := redisURL(t, "zsetpoll")
	runOK(t, "push", url, "old", "--after=1h")
	runOK(t, "reshard", url, "4").wantOutput(t, "new messages go to 4 shards\n")
	runOK(t, "push", url, "new", "--after=1h")
	runOK(t, "push", url+"?shards=2", "newer", "--after=1h")
	runOK(t, "stats", url).wantOutput(t, "scheduled               3\n")
	for _, args := range [][]string{{url, "3"}, {newURL("memory"), "4"}} {
		if r := delayqRun(t, append([]string{"reshard"}, args...)...); r.code == 0 {
			t.Errorf("reshard %v succeeds: %s", args, r.stdout)
		}
	}
}

// In a pipe there is a line each time, and a signal is an end in good order.
func TestStatsWatch(t *testing.T) {
	t.Parallel()
	url := newURL("memory")
	for _, args := range [][]string{{}, {"--json"}} {
		ctx, cancel := context.WithCancel(t.Context())
		out := &tripwire{word: "\n", times: 3, pull: cancel}
		code := run(ctx, append([]string{"stats", url, "--watch", "--every=100ms"}, args...), nil, out, &bytes.Buffer{})
		if code != exitOK || strings.Contains(out.buf.String(), "\x1b") {
			t.Errorf("exit code %d: %s", code, out.buf.String())
		}
		lines := strings.Split(strings.TrimSuffix(out.buf.String(), "\n"), "\n")
		if len(lines) < 3 {
			t.Errorf("got %d lines", len(lines))
		}
		for _, line := range lines {
			if !strings.Contains(line, "scheduled") || strings.HasPrefix(line, "{") != (len(args) == 1) {
				t.Errorf("got %s", line)
			}
		}
	}
}

func TestStatsFrames(t *testing.T) {
	t.Parallel()
	var c statsCommand
	lines := 0
	first, err := c.frame(delayq.Stats{}, true, &lines)
	second, err2 := c.frame(delayq.Stats{Dead: 7}, true, &lines)
	mustDo(t, errors.Join(err, err2))
	if strings.Contains(first, "\x1b") || !strings.HasPrefix(second, fmt.Sprintf("\x1b[%dA\x1b[J", strings.Count(first, "\n"))) {
		t.Errorf("the second does not take the place of the first:\n%q\n%q", first, second)
	}
}

func TestPeek(t *testing.T) {
	t.Parallel()
	for _, url := range everyBackend(t) {
		q := openQueue(t, url)
		delayqRun(t, "peek", url).wantOutput(t, "Nothing waits.\n")
		schedule(t, q, 12)
		r := runOK(t, "peek", url)
		r.wantOutput(t, "DUE", "         0  m0\n    \"body 0\"\n", "  m9\n", "There are more than 10; --limit=N shows them.\n")
		if strings.Contains(r.stdout, "m10") {
			t.Errorf("got %s", r.stdout)
		}
		all := waiting(t, url)
		if len(all) != 12 || all[11].ID != "m11" || *all[3].Body != "body 3" {
			t.Errorf("got %+v", all)
		}
	}
}

func TestGet(t *testing.T) {
	t.Parallel()
	for _, url := range everyBackend(t) {
		q := openQueue(t, url)
		makeDead(t, q, "dead")
		pushLater(t, q, "later")
		push(t, q, "held")
		_, err := q.Receive(t.Context())
		mustDo(t, err)
		r := delayqRun(t, "get", url, "later", "nosuch", "held", "dead")
		r.wantCode(t, exitPartly)
		r.wantOutput(t, "later  scheduled\n    due ", "held  in flight\n", "    lease until ", "    attempts 1\n", "dead  dead\n", "    died ", "    ! ")
		r.wantSaid(t, `"nosuch": no such message`)
		r = runOK(t, "get", url, "held", "later", "dead", "--json")
		all := decodeLines[messageJSON](t, r.stdout)
		if len(all) != 3 || all[0].ID != "held" || all[0].State != "in flight" || *all[0].Attempts != 1 || all[0].LeaseUntil == nil || all[0].Died != nil {
			t.Fatalf("got %s", r.stdout)
		}
		if all[1].State != "scheduled" || all[1].LeaseUntil != nil || all[1].Body == nil || all[2].State != "dead" || all[2].Died == nil || all[2].Reason == nil {
			t.Errorf("got %s", r.stdout)
		}
	}
}

func TestGetOfAnIDThatIsTaken(t *testing.T) {
	t.Parallel()
	url := redisURL(t, "zsetpoll")
	q := openQueue(t, url)
	_, err := q.Push(t.Context(), []byte("body"), delayq.ID("a"), delayq.After(time.Hour), delayq.UniqueFor(time.Hour))
	mustDo(t, err)
	mustDo(t, q.Cancel(t.Context(), "a"))
	runOK(t, "get", url, "a").wantOutput(t, "a  done\n    id taken until ")
	r := runOK(t, "get", url, "a", "--json")
	if all := decodeLines[messageJSON](t, r.stdout); len(all) != 1 || all[0].State != "done" || all[0].UniqueUntil == nil || all[0].Body != nil || all[0].Attempts != nil {
		t.Errorf("got %s", r.stdout)
	}
}

// A member that Java has moved has no id yet.
func TestPeekOfAQueueSharedWithJava(t *testing.T) {
	t.Parallel()
	q := newJavaQueue(t)
	due := q.offerOneOfEach(t)
	mustDo(t, q.client.RPush(t.Context(), q.name, "moved by Java").Err())
	all := waiting(t, q.url)
	if len(all) != 6 || all[0].ID != "" || all[0].Due != nil || *all[0].Body != "moved by Java" {
		t.Fatalf("got %+v", all)
	}
	if first := all[1]; !first.Due.Equal(due) || *first.Body != "hello" || !strings.HasSuffix(first.ID, fmt.Sprint("-", due.UnixMilli())) {
		t.Errorf("got %+v", first)
	}
	if bad := all[4]; !strings.Contains(bad.Error, "not UTF-8") || bad.ID == "" || string(bad.BodyBase64) != "\xff\xfe" {
		t.Errorf("got %+v", bad)
	}
	if bad := all[5]; bad.Error == "" || bad.ID != "" || *bad.Body != "no member of Redisson's" {
		t.Errorf("got %+v", bad)
	}
	delayqRun(t, "peek", q.url).wantOutput(t, "-                                0  -\n    \"moved by Java\"\n", "    ! codec string: not UTF-8\n")
	r := runOK(t, "purge", q.url, "--yes")
	if keys := q.dump(t); r.stdout != "deleted 6\n" || len(keys) != 0 {
		t.Errorf("got %q, left %q", r.stdout, keys)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	for _, url := range everyBackend(t) {
		q := openQueue(t, url)
		schedule(t, q, 4)
		push(t, q, "held")
		_, err := q.Receive(t.Context())
		mustDo(t, err)
		r := runOK(t, "cancel", url, "m0", "m1")
		r.wantOutput(t, "cancelled 2\n")
		r = delayqRun(t, "cancel", url, "m2", "m0", "held")
		r.want(t, result{exitPartly, "cancelled 1\n",
			"delayq: \"m0\": no such message\ndelayq: \"held\": message is in flight\ndelayq: 2 of 3: not done\n"})
		r = delayqRun(t, "cancel", url, "m3", "m3", "--json")
		r.wantCode(t, exitPartly)
		if r.stdout != "{\"id\":\"m3\",\"done\":true}\n{\"id\":\"m3\",\"done\":false,\"error\":\"no such message\"}\n" {
			t.Errorf("got %q", r.stdout)
		}
	}
}

func TestReschedule(t *testing.T) {
	t.Parallel()
	for _, url := range everyBackend(t) {
		q := openQueue(t, url)
		schedule(t, q, 2)
		r := runOK(t, "reschedule", url, "m0", "--at=2101-02-03T04:05:06Z")
		r.wantOutput(t, "rescheduled 1\n")
		r = runOK(t, "reschedule", url, "m1", "--after=3h", "--json")
		r.wantOutput(t, "{\"id\":\"m1\",\"done\":true}\n")
		all := waiting(t, url)
		if wait := time.Until(*all[0].Due); len(all) != 2 || all[0].ID != "m1" || wait < 2*time.Hour+50*time.Minute || all[1].Due.Year() != 2101 {
			t.Errorf("got %+v", all)
		}
		r = delayqRun(t, "reschedule", url, "m0", "nobody", "m1", "--at=2101-02-03T04:05:06Z")
		r.want(t, result{exitPartly, "rescheduled 2\n", "delayq: \"nobody\": no such message\ndelayq: 1 of 3: not done\n"})
		for _, bad := range []string{"", "--after=1s --at=2101-02-03T04:05:06Z", "--at=3000-01-01T00:00:00Z"} {
			delayqRun(t, append([]string{"reschedule", url, "m0"}, strings.Fields(bad)...)...).wantCode(t, exitUnusable)
		}
	}
}

// TestRedisURL uses a queue by a URL as REDIS_URL has them.
func TestRedisURL(t *testing.T) {
	t.Parallel()
	own := redisURL(t, "zsetpoll")
	slash := strings.LastIndex(own, "/")
	store, queue := "redis"+strings.TrimPrefix(own[:slash], "zsetpoll")+"/0", own[slash+1:]
	runOK(t, "push", store+"?queue="+queue, "hello", "--id=a", "--after=1h")
	runOK(t, "stats", own).wantOutput(t, "scheduled               1\n")
	delayqRun(t, "stats", store).want(t, result{exitUnusable, "", "delayq: open: invalid queue name \"\": allowed is one, since redis:// names a store alone: queue=orders in the URL\n"})
}

func TestDead(t *testing.T) {
	t.Parallel()
	for _, url := range everyBackend(t) {
		q := openQueue(t, url)
		delayqRun(t, "dead", "list", url).wantOutput(t, "There are no dead letters.\n")
		makeDead(t, q, "a", "b", "c", "d", "e")
		r := runOK(t, "dead", "list", url, "--limit=2")
		r.wantOutput(t, "         1  a\n    ! reason of a\n    \"body of a\"\n", "There are more than 2; --limit=N shows them.\n")
		r = delayqRun(t, "dead", "list", url, "--json")
		all := decodeLines[messageJSON](t, r.stdout)
		if len(all) != 5 || all[4].ID != "e" || *all[4].Reason != "reason of e\nstack" || *all[4].Attempts != 1 || all[4].Died == nil || *all[4].Body != "body of e" {
			t.Errorf("got %s", r.stdout)
		}
		r = delayqRun(t, "dead", "redrive", url, "a", "nobody")
		r.want(t, result{exitPartly, "redriven 1\n", "delayq: \"nobody\": no such message\ndelayq: 1 of 2: not done\n"})
		runOK(t, "dead", "delete", url, "b", "c", "--json")
		wantStats(t, q, 0, 1, 2)
		runOK(t, "dead", "trim", url, "--max-age=1d", "--max-count=1000").wantOutput(t, "0 dead letters deleted\n")
		delayqRun(t, "dead", "redrive", url, "--all").wantOutput(t, "redriven 2\n")
		delayqRun(t, "dead", "delete", url, "--all").wantOutput(t, "deleted 0\n")
		wantStats(t, q, 0, 3, 0)
		delayqRun(t, "dead", "redrive", url).wantCode(t, exitUnusable)
		delayqRun(t, "dead", "delete", url, "a", "--all").wantCode(t, exitUnusable)
	}
}

func TestDeadByFilter(t *testing.T) {
	t.Parallel()
	for _, url := range everyBackend(t) {
		q := openQueue(t, url)
		for _, kind := range []string{"mail", "push", "mail"} {
			runOK(t, "push", url, "body", "--type="+kind, "--header=lang=en")
			d, err := q.Receive(t.Context())
			mustDo(t, err)
			mustDo(t, d.DeadLetter(t.Context(), kind+" failed"))
		}
		delayqRun(t, "dead", "list", url, "--older-than=1h").wantOutput(t, "There are no dead letters.\n")
		for _, args := range []string{"--type=mail --header=lang=en", "--reason=mail", "--older-than=1ms --type=mail"} {
			r := runOK(t, append([]string{"dead", "list", url, "--json"}, strings.Fields(args)...)...)
			all := decodeLines[messageJSON](t, r.stdout)
			if len(all) != 2 || *all[0].Reason != "mail failed" || all[1].Headers["type"] != "mail" {
				t.Errorf("with %s the letters are %s", args, r.stdout)
			}
		}
		delayqRun(t, "dead", "redrive", url, "--type=fax").wantOutput(t, "redriven 0\n")
		delayqRun(t, "dead", "redrive", url, "--reason=mail", "--header=lang=en").wantOutput(t, "redriven 2\n")
		wantStats(t, q, 0, 2, 1)
		delayqRun(t, "dead", "delete", url, "--older-than=1ms").wantOutput(t, "deleted 1\n")
		wantStats(t, q, 0, 2, 0)
		for _, bad := range []string{"--all --type=mail", "a --reason=mail", "--header=lang", "--older-than=yesterday", "--older-than=-1h", "--older-than=0"} {
			delayqRun(t, append([]string{"dead", "delete", url}, strings.Fields(bad)...)...).wantCode(t, exitUnusable)
		}
	}
}

func TestDeadInParts(t *testing.T) {
	t.Parallel()
	url := newURL("memory")
	q := openQueue(t, url)
	const n = 2*idsAtOnce + 7
	for i := range n {
		makeDead(t, q, fmt.Sprint("m", i))
	}
	delayqRun(t, "dead", "delete", url, "--all").wantOutput(t, fmt.Sprintf("deleted %d\n", n))
	wantStats(t, q, 0, 0, 0)
}

func TestPurge(t *testing.T) {
	t.Parallel()
	for _, url := range everyBackend(t) {
		q := openQueue(t, url)
		schedule(t, q, 3)
		makeDead(t, q, "d")
		r := delayqRun(t, "purge", url)
		r.wantCode(t, exitUnusable)
		r.wantSaid(t, "expected --yes")
		wantStats(t, q, 3, 0, 1)
		r = runOK(t, "purge", url, "--yes")
		r.wantOutput(t, "deleted 4\n")
		wantStats(t, q, 0, 0, 0)
		delayqRun(t, "purge", url, "--yes", "--json").wantOutput(t, "{\"removed\":0}\n")
	}
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	for _, url := range everyBackend(t) {
		q := openQueue(t, url)
		push(t, q, "now")
		delayqRun(t, "pause", url).wantOutput(t, "paused until a resume\n")
		delayqRun(t, "stats", url).wantOutput(t, "paused until a resume\n")
		short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if d, err := q.Receive(short); err == nil {
			t.Errorf("got %s from a paused queue", d.ID)
		}
		delayqRun(t, "pause", url, "--until=2101-02-03T04:05:06Z").wantOutput(t, "paused until 2101-02-03T04:05:06.000Z\n")
		r := runOK(t, "pause", url, "--for=2h", "--json")
		var p pauseJSON
		r.decode(t, &p)
		if wait := time.Until(*p.PausedUntil); !p.Paused || wait < 110*time.Minute || wait > 2*time.Hour+time.Minute {
			t.Errorf("got %s", r.stdout)
		}
		delayqRun(t, "resume", url, "--json").wantOutput(t, "{\"paused\":false}\n")
		delayqRun(t, "resume", url).wantOutput(t, "not paused\n")
		d, err := q.Receive(t.Context())
		mustDo(t, err)
		mustDo(t, d.Ack(t.Context()))
		for _, bad := range []string{"--for=0s", "--for=-1s", "--for=1s --until=2101-02-03T04:05:06Z", "--until=3000-01-01T00:00:00Z"} {
			delayqRun(t, append([]string{"pause", url}, strings.Fields(bad)...)...).wantCode(t, exitUnusable)
		}
	}
}

// A backend that lacks something says so, with an exit code of its own.
func TestUnsupportedCommands(t *testing.T) {
	t.Parallel()
	url := newURL("plain")
	for _, args := range []string{
		"stats URL", "get URL a", "peek URL", "cancel URL a", "reschedule URL a --after=1s", "dead list URL", "dead redrive URL a", "dead delete URL --all",
		"purge URL --yes", "purge URL", "pause URL", "resume URL",
	} {
		r := delayqRun(t, strings.Fields(strings.Replace(args, "URL", url, 1))...)
		r.wantCode(t, exitUnsupported)
		r.wantSaid(t, "backend memory does not support")
	}
}

func TestStoreFailures(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"zsetpoll", "keyspace", "redisson", "rabbitmq"} {
		url := scheme + "://127.0.0.1:" + closedPort(t) + "/q"
		commands := []string{"push URL x", "consume URL", "stats URL", "dead list URL", "verify URL"}
		if scheme == "redisson" {
			commands = append(commands, "redisson inspect URL")
		}
		for _, args := range commands {
			r := delayqRun(t, strings.Fields(strings.Replace(args, "URL", url, 1))...)
			r.wantCode(t, exitStore)
			r.wantSaid(t, "connection refused")
			if r.stdout != "" {
				t.Errorf("%s: on standard output: %s", args, r.stdout)
			}
		}
	}
}

// The built program ends in good order when a signal comes, whatever a command waits for.
func TestSignalEndsWatching(t *testing.T) {
	t.Parallel()
	cmd := process(t, "stats", redisURL(t, "zsetpoll"), "--watch", "--every=100ms")
	var out, said safeBuffer
	cmd.Stdout, cmd.Stderr = &out, &said
	mustDo(t, cmd.Start())
	until(t, "second line", func() bool { return strings.Count(out.String(), "\n") > 1 }, &said)
	mustDo(t, cmd.Process.Signal(syscall.SIGTERM))
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, said.String())
	}
}

type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// The client library for Redis tells which server a Sentinel names. --verbose shows that as a line of
// the library's own log; nothing else does.
func TestLinesOfTheClientLibrary(t *testing.T) {
	t.Parallel()
	sentinel := testenv.Sentinel(t, "main", testenv.Redis(t, testenv.Private()).Addr())
	url := "redis://" + sentinel + "?master=main&queue=orders"
	if r := inProcess(t, "stats", url); r.code != 0 || r.stderr != "" {
		t.Errorf("exit code %d, standard error %q", r.code, r.stderr)
	}
	r := inProcess(t, "stats", url, "--verbose")
	if !strings.Contains(r.stderr, `level=DEBUG msg="go-redis: sentinel: new master`) || strings.Contains(r.stderr, "\nredis: ") {
		t.Errorf("with --verbose standard error is %q", r.stderr)
	}
}
