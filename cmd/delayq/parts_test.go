package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/server"
)

// The store fails for some messages of the second part. What was done before is reported, with the
// exit code of the failure.
func TestPartsOfAStoreThatFails(t *testing.T) {
	t.Parallel()
	ids := make([]string, 3*idsAtOnce)
	for i := range ids {
		ids[i] = fmt.Sprint("m", i)
	}
	for _, asJSON := range []bool{false, true} {
		var out, said bytes.Buffer
		calls := 0
		err := onIDs(streams{out: &out, err: &said}, "cancelled", ids, asJSON, func(some []string) error {
			if calls++; calls == 1 {
				return nil
			}
			errs := make([]error, len(some))
			for i := range errs[:10] {
				errs[i] = delayq.ErrUnavailable
			}
			errs[10] = delayq.ErrNotFound
			return &delayq.BatchError{Errs: errs}
		})
		want := 2*idsAtOnce - 11
		if exitCode(err) != exitStore || calls != 2 || !strings.Contains(err.Error(), `not tried from "m1000" on`) {
			t.Errorf("after %d calls: %v", calls, err)
		}
		switch got := out.String(); {
		case !asJSON && got != fmt.Sprintf("cancelled %d\n", want):
			t.Errorf("got %q", got)
		case asJSON && (strings.Count(got, `"done":true`) != want || strings.Count(got, "\n") != 2*idsAtOnce):
			t.Errorf("got %s", got)
		}
		if n := strings.Count(said.String(), "\n"); n != 11 {
			t.Errorf("%d ids are named: %s", n, &said)
		}
	}
	failed := errors.New("gone")
	var out bytes.Buffer
	if err := onIDs(streams{out: &out, err: &out}, "cancelled", ids, false, func([]string) error { return failed }); !errors.Is(err, failed) || out.Len() > 0 {
		t.Errorf("got %v and %q", err, &out)
	}
}

// A flag whose variable is not set is an error. It does not count as not given.
func TestEmptyFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"push", "memory:///q", "body", "--id="},
		{"push", "memory:///q", "body", "--type="},
		{"dead", "delete", "memory:///q", "--type=mail", "--reason="},
		{"dead", "redrive", "memory:///q", "--older-than=1h", "--type="},
		{"dead", "list", "memory:///q", "--reason="},
	} {
		r := delayqRun(t, args...)
		r.wantCode(t, exitUnusable)
		r.wantSaid(t, "allowed is a text that is not empty")
	}
}

// The last line of a file of tokens may lack its end, as editors leave it.
func TestTokenAfterAnOpenLine(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens")
	runOK(t, "token", "alice", "push:mail", "--file="+file)
	raw, err := os.ReadFile(file)
	mustDo(t, err)
	mustDo(t, os.WriteFile(file, bytes.TrimRight(raw, "\n"), 0o600))
	runOK(t, "token", "bob", "consume:mail", "--file="+file)
	raw, err = os.ReadFile(file)
	mustDo(t, err)
	if _, err := server.ReadTokens(bytes.NewReader(raw)); err != nil || bytes.Count(raw, []byte("\n")) != 2 {
		t.Errorf("%v: %s", err, raw)
	}
}
