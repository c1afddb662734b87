//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// notText are bytes that no UTF-8 text has.
const notText = "\xff\x80\xc3("

// Arguments reach the store and a command unchanged, byte for byte.
func TestArgumentsKeepTheirBytes(t *testing.T) {
	t.Parallel()
	url := redisURL(t, "zsetpoll")
	inProcess(t, "push", url, "body "+notText, "--id=m", "--header=k="+notText, "--type="+notText).wantCode(t, exitOK)
	all := waiting(t, url)
	if len(all) != 1 || string(all[0].BodyBase64) != "body "+notText || string(all[0].HeadersBase64["k"]) != notText || string(all[0].HeadersBase64["type"]) != notText {
		t.Fatalf("got %+v", all)
	}
	const script = `printf '%s|' "$@" "$DELAYQ_HEADER_K" "$DELAYQ_HEADER_TYPE"; cat`
	r := inProcess(t, "consume", url, "--count=1", "--exec", "--", "sh", "-c", script, "sh", notText, "--x="+notText)
	r.wantCode(t, exitOK)
	if want := strings.Join([]string{notText, "--x=" + notText, notText, notText, "body " + notText}, "|"); r.stdout != want {
		t.Errorf("the command got %q, want %q", r.stdout, want)
	}
}

func TestPathsKeepTheirBytes(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), notText+".jsonl")
	if err := os.WriteFile(file, []byte(`{"body":"x"}`), 0o600); err != nil {
		t.Skipf("this file system takes text only: %v", err)
	}
	inProcess(t, "demo", "--input="+file).wantCode(t, exitOK)
	command := filepath.Join(t.TempDir(), notText)
	mustDo(t, os.WriteFile(command, []byte("#!/bin/sh\necho ran\n"), 0o700))
	url := redisURL(t, "zsetpoll")
	inProcess(t, "push", url, "x").wantCode(t, exitOK)
	r := inProcess(t, "consume", url, "--count=1", "--exec", "--", command)
	r.wantCode(t, exitOK)
	r.wantOutput(t, "ran")
}

// Values that must be text are rejected, never replaced.
func TestBytesWhereTextIsRequired(t *testing.T) {
	t.Parallel()
	url := redisURL(t, "zsetpoll")
	for _, args := range [][]string{
		{"push", url, "x", "--id=" + notText},
		{"push", url, "x", "--header=" + notText + "=v"},
		{"push", url + notText, "x"},
		{"cancel", url, notText},
		{"cancel", url, notText, "--json"},
		{"cancel", url, "m", notText, "--json"},
		{"reschedule", url, notText, "--after=1s", "--json"},
		{"dead", "redrive", url, notText},
		{"dead", "delete", url, notText, "--json"},
	} {
		r := inProcess(t, args...)
		r.wantCode(t, exitUnusable)
		if !strings.Contains(r.stderr, `\xff\x80\xc3(`) || !strings.Contains(r.stderr, "allowed") {
			t.Errorf("%q: it does not say which bytes are not allowed: %s", args, r.stderr)
		}
		if strings.Contains(r.stdout+r.stderr, "\ufffd") || r.stdout != "" {
			t.Errorf("%q: bytes were replaced: %s%s", args, r.stdout, r.stderr)
		}
	}
	if all := waiting(t, url); len(all) > 0 {
		t.Errorf("got %+v", all)
	}
}
