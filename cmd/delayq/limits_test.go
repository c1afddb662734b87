package main

import (
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/cmd/delayq/internal/jsonl"
)

var allLimits = jsonl.Limits{Attempts: 3, HandlerTimeout: jsonl.Duration(time.Minute), ExpiresAfter: jsonl.Duration(2 * time.Hour), Expires: time.Date(2100, 1, 31, 18, 0, 0, 0, time.UTC), DeadLetterExpired: true}

// Limits given as flags or as a field come out as they were given, and the output is valid input.
func TestPushWithLimits(t *testing.T) {
	t.Parallel()
	const twoLines = `{"body": "x"}` + "\n" + `{"limits": {"attempts": 7}}`
	for _, url := range everyBackend(t) {
		flags := []string{"--attempts=3", "--handler-timeout=1m", "--expires-after=2h", "--expires=2100-01-31T18:00:00Z", "--dead-letter-expired"}
		runOK(t, append([]string{"push", url, "hello", "--after=1h"}, flags...)...)
		shown := runOK(t, "peek", url, "--json").stdout
		all := decodeLines[messageJSON](t, shown)
		if len(all) != 1 || all[0].Limits == nil || *all[0].Limits != allLimits {
			t.Fatalf("got %s", shown)
		}
		other := newURL("memory")
		runIn(t.Context(), strings.NewReader(shown), "push", other).wantCode(t, 0)
		if again := waiting(t, other); len(again) != 1 || again[0].Limits == nil || *again[0].Limits != allLimits {
			t.Errorf("pushed again it is %+v", again)
		}
		runIn(t.Context(), strings.NewReader(twoLines), "push", other, "--attempts=5").wantCode(t, 0)
		consumed := runOK(t, "consume", other, "--count=2").stdout
		if a, b := strings.Index(consumed, `"attempts":5`), strings.Index(consumed, `"attempts":7`); a < 0 || b < a {
			t.Errorf("consumed are %s", consumed)
		}
	}
}

func TestBadLimits(t *testing.T) {
	t.Parallel()
	url := newURL("memory")
	for _, bad := range []string{
		"--attempts=0", "--attempts=-1", "--attempts=x", "--handler-timeout=0s", "--handler-timeout=25h", "--expires-after=-1s", "--expires=soon", "--dead-letter-expired",
	} {
		delayqRun(t, "push", url, "hello", bad).wantCode(t, exitUnusable)
	}
	for _, bad := range []string{`3`, `{"attempts": "3"}`, `{"expires_after": 3}`, `{"expires_after": "soon"}`, `{"colour": 1}`, `{"attempts": -1}`, `{"expires": "soon"}`, `{"attempts": 3, "attempts": 4}`, `{"Attempts": 3}`, `{"dead_letter_expired": 1}`} {
		r := runIn(t.Context(), strings.NewReader(`{"limits": `+bad+`}`), "push", url)
		r.wantCode(t, exitPartly)
		if strings.Contains(r.stderr, "Go ") || !strings.Contains(r.stderr, ": allowed ") {
			t.Errorf("with limits %s: %s", bad, r.stderr)
		}
	}
	if all := waiting(t, url); len(all) > 0 {
		t.Errorf("pushed were %+v", all)
	}
}
