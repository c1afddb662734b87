package main

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/redisson"
)

// Java may have a message due in any year, also one that JSON has no form for.
func TestAbsurdDueTimesAsJSON(t *testing.T) {
	t.Parallel()
	queue := redisURL(t, "redisson")
	name := queue[strings.LastIndex(queue, "/")+1:]
	client := testenv.SharedRedis(t).Client(t)
	for score, body := range map[float64]string{-1e18: "long ago", 1e18: "in the end"} {
		m := redisson.Member{Format: redisson.V2, ID: []byte("12345678"), Payload: []byte(body)}
		mustDo(t, client.ZAdd(t.Context(), "redisson_delay_queue_timeout:{"+name+"}", redis.Z{Score: score, Member: m.Bytes()}).Err())
	}
	for _, args := range [][]string{{"peek", queue, "--json"}, {"redisson", "inspect", queue, "--json"}, {"stats", queue, "--json"}} {
		runOK(t, args...)
	}
	r := runOK(t, "consume", queue, "--count=1")
	r.wantOutput(t, "long ago", `"due":"0000-01-01T00:00:00Z"`)
	r = delayqRun(t, "peek", queue, "--json")
	r.wantOutput(t, "in the end", `"due":"9999-12-31T23:59:59Z"`)
	runOK(t, "purge", queue, "--yes")
}

// A message's fields are never part of a shell command: they come in variables that begin with
// DELAYQ_, and on standard input.
func TestMessagesAreNotShellCommands(t *testing.T) {
	t.Parallel()
	queue := redisURL(t, "zsetpoll")
	q := openQueue(t, queue)
	const hostile = "$(touch x); `id` | ' \" \\ \n && exit 1"
	line := `{"id":"$(id);'","body":` + quoted(hostile) + `,"headers":{"PATH":"/evil","LD_PRELOAD":"x","a=b":"c","$(id)":` + quoted(hostile) + `}}`
	runIn(t.Context(), strings.NewReader(line+"\n"), "push", queue).wantCode(t, exitOK)
	r := delayqRun(t, "consume", queue, "--exec", "--count=1", "--", "sh", "-c",
		`test "$PATH" != /evil && test -z "$LD_PRELOAD" && test "$DELAYQ_HEADER_PATH" = /evil && test "$DELAYQ_HEADER_A_B" = c && printf '%s|' "$DELAYQ_ID" && cat`)
	r.wantCode(t, exitOK)
	if want := "$(id);'|" + hostile; r.stdout != want {
		t.Errorf("got %q, want %q\n%s", r.stdout, want, r.stderr)
	}
	if s, err := q.Stats(t.Context()); err != nil || s.Dead+s.Ready+s.Scheduled+s.InFlight != 0 {
		t.Errorf("left over: %+v, %v", s, err)
	}
}

func quoted(text string) string {
	b, _ := line(text)
	return strings.TrimSpace(string(b))
}

// Control characters from a store reach no terminal.
func TestControlCharactersStayOffTheTerminal(t *testing.T) {
	t.Parallel()
	for _, queue := range everyBackend(t)[1:] {
		q := openQueue(t, queue)
		line := `{"id":"a","body":"\u001b[2Jx\u009b31m","headers":{"k\u202e":"\u0007\u001b]0;t\u0007"},"after":"1h"}`
		runIn(t.Context(), strings.NewReader(line+"\n"), "push", queue).wantCode(t, exitOK)
		push(t, q, "dead")
		d, err := q.Receive(t.Context())
		if err == nil {
			err = d.DeadLetter(t.Context(), "\x1b[2J reason\x00")
		}
		mustDo(t, err)
		for _, args := range [][]string{{"peek", queue}, {"get", queue, "a", "dead"}, {"dead", "list", queue}, {"stats", queue}, {"peek", queue, "--verbose"}} {
			r := runOK(t, args...)
			if text := r.stdout + r.stderr; strings.ContainsAny(text, "\x00\x07\x1b\u009b\u202e") {
				t.Errorf("%q prints %q", args[:1], text)
			}
		}
		_, err = q.Purge(t.Context())
		mustDo(t, err)
	}
}

// A listing does not stop at due times that cannot be shown.
func TestWritableTimes(t *testing.T) {
	t.Parallel()
	for year, want := range map[int]string{-290_000: "0000-01-01", 0: "0000-01-01", 2026: "2026-01-01", 9999: "9999-01-01", 10_000: "9999-12-31", 290_000_000: "9999-12-31"} {
		if got := writable(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)).Format(time.DateOnly); got != want {
			t.Errorf("year %d is written as %s, want %s", year, got, want)
		}
	}
}
