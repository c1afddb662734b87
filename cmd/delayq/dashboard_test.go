package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/delayq/delayq/internal/testenv"
)

var servedAt = regexp.MustCompile(`^(http://\S+/) \(`)

// startDashboard runs the command until the test ends, and returns its address.
func startDashboard(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr safeBuffer
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{"dashboard", "--listen=127.0.0.1:0"}, args...), strings.NewReader(""), &stdout, &stderr)
	}()
	t.Cleanup(func() {
		stop()
		if code := <-ended; code != exitOK {
			t.Errorf("it ends with %d: %s", code, stderr.String())
		}
	})
	var at string
	until(t, "address", func() bool {
		m := servedAt.FindStringSubmatch(stdout.String())
		if m != nil {
			at = m[1]
		}
		return m != nil || len(ended) > 0
	}, &stderr)
	return at
}

func fetch(t *testing.T, url, password string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	mustDo(t, err)
	if password != "" {
		r.SetBasicAuth("ann", password)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(r)
	mustDo(t, err)
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	mustDo(t, err)
	return res.StatusCode, string(body)
}

func TestDashboardIsReadOnly(t *testing.T) {
	t.Parallel()
	queue := redisURL(t, "zsetpoll")
	push(t, openQueue(t, queue), "a")
	name := queue[strings.LastIndex(queue, "/")+1:]
	for flag, want := range map[string]string{"--verbose": "Read-only: the dashboard is read-only", "--write": "Pause all workers"} {
		at := startDashboard(t, queue, flag)
		if code, page := fetch(t, at+"queues/"+name, ""); code != http.StatusOK || !strings.Contains(page, want) {
			t.Errorf("with %s: %d, without %q: %s", flag, code, want, page)
		}
	}
}

// A URL may name a store alone, and there may be several.
func TestDashboardOfStores(t *testing.T) {
	t.Parallel()
	queue := redisURL(t, "zsetpoll")
	push(t, openQueue(t, queue), "a")
	slash := strings.LastIndex(queue, "/")
	server := testenv.Redis(t)
	at := startDashboard(t, queue[:slash], server.URL()+"?queue=other", server.URL())
	_, page := fetch(t, at+"?find="+queue[slash+1:], "")
	if want := ">zsetpoll@" + strings.TrimPrefix(queue[:slash], "zsetpoll://") + "/" + queue[slash+1:] + "<"; !strings.Contains(page, want) {
		t.Errorf("there is no %s: %s", want, page)
	}
	if _, page = fetch(t, at+"?find=other", ""); !strings.Contains(page, "redis@"+server.Addr()+"/other") {
		t.Errorf("there is no queue other: %s", page)
	}
}

func TestDashboardPassword(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "password")
	mustDo(t, os.WriteFile(file, []byte("correct horse\n"), 0o600))
	at := startDashboard(t, newURL("memory"), "--password-file="+file)
	for password, want := range map[string]int{"": http.StatusUnauthorized, "wrong": http.StatusUnauthorized, "correct horse": http.StatusOK} {
		if code, _ := fetch(t, at, password); code != want {
			t.Errorf("the password %q gets %d, want %d", password, code, want)
		}
	}
}

func TestDashboardRejects(t *testing.T) {
	t.Parallel()
	short := filepath.Join(t.TempDir(), "short")
	mustDo(t, os.WriteFile(short, []byte("short"), 0o600))
	for want, args := range map[string][]string{
		"give --password-file": {"memory:///q", "--listen=0.0.0.0:0"},
		"expected HOST:PORT":   {"memory:///q", "--listen=8490"},
		"8 bytes or more":      {"memory:///q", "--password-file=" + short},
		"connection refused":   {"redis://127.0.0.1:1"},
		"no such file":         {"memory:///q", "--password-file=" + short + "x"},
		"is not empty":         {"memory:///q", "--password-file="},
		"unknown URL scheme":   {"nosuch:///q"},
		`expected "<url> ..."`: {},
	} {
		r := delayqRun(t, append([]string{"dashboard"}, args...)...)
		if r.code == exitOK || !strings.Contains(r.stderr, want) {
			t.Errorf("%q: %d %s", args, r.code, r.stderr)
		}
	}
}
