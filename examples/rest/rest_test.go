package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(int) { http.DefaultClient.CloseIdleConnections() }))
}

// The longer delay is asked for first, and comes out last.
func TestRest(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"--addr", "127.0.0.1:0"}, w) }()
	lines := bufio.NewScanner(r)
	next := func() string {
		if !lines.Scan() {
			t.Fatalf("no further line: %v", lines.Err())
		}
		return lines.Text()
	}
	at := strings.TrimPrefix(next(), "listening on ")
	for query, want := range map[string]int{"delay=soon&value=x": 400, "delay=-1&value=x": 400} {
		if got, text := get(t, at+"/delayed/message?"+query); got != want {
			t.Errorf("%s: %d %s, want %d", query, got, text, want)
		}
	}
	for _, query := range []string{"delay=10&value=AAAA", "delay=1&value=BBBB"} {
		if status, text := get(t, at+"/delayed/message?"+query); status != 200 {
			t.Errorf("%s: %d %s", query, status, text)
		}
	}
	if first, second := next(), next(); first != "BBBB" || second != "AAAA" {
		t.Errorf("came %s, %s; want BBBB, AAAA", first, second)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func get(t *testing.T, url string) (status int, text string) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(body)
}
