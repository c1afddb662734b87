package main

import (
	"cmp"
	"crypto/rand"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/internal/testenv"
)

// rabbitURL names a queue of its own on a broker that all tests share. Another queue was opened there
// before: a broker that has just started on a busy machine may take longer to reply than a command waits.
func rabbitURL(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(testenv.SharedRabbitMQ(t).URL())
	mustDo(t, err)
	vhost := cmp.Or(strings.TrimPrefix(u.EscapedPath(), "/"), "%2F")
	broker := "rabbitmq://" + u.User.String() + "@" + u.Host + "/" + vhost + "/"
	q, err := testenv.RetryOnBusyRabbit(t.Context(), func() (delayq.Queue, error) {
		return delayq.Open(t.Context(), broker+rand.Text(), delayq.WithLogger(slog.New(slog.DiscardHandler)))
	})
	mustDo(t, err)
	mustDo(t, q.Close())
	return broker + rand.Text()
}

func TestRabbitMQ(t *testing.T) {
	t.Parallel()
	queue := rabbitURL(t)
	r := runIn(t.Context(), strings.NewReader("{\"id\":\"b\",\"body\":\"later\",\"after\":\"300ms\"}\n{\"id\":\"a\",\"body\":\"65\"}\n"), "push", queue)
	r.wantCode(t, exitOK)
	if r.stdout != "b\na\n" {
		t.Fatalf("pushed %q", r.stdout) // consume would wait for ever
	}
	r = runOK(t, "consume", queue, "--exec", "--count=2", "--", "sh", "-c", `read body; echo "$DELAYQ_ID $body"; test "$body" != 65 || exit 65`)
	r.wantOutput(t, "a 65\n", "b later\n")
	slash := strings.LastIndex(queue, "/")
	uri := "amqp" + strings.TrimPrefix(queue[:slash], "rabbitmq") + "?queue=" + queue[slash+1:]
	r = delayqRun(t, "dead", "list", uri, "--json")
	if ls := decodeLines[messageJSON](t, r.stdout); len(ls) != 1 || ls[0].ID != "a" {
		t.Errorf("dead: %s", r.stdout)
	}
	delayqRun(t, "dead", "redrive", queue, "--all").wantOutput(t, "redriven 1\n")
	delayqRun(t, "consume", queue, "--count=1").wantOutput(t, `"id":"a"`)
	for _, args := range []string{"get URL a", "peek URL", "cancel URL a", "reschedule URL a --after=1s", "purge URL --yes", "pause URL", "resume URL"} {
		delayqRun(t, strings.Fields(strings.Replace(args, "URL", queue, 1))...).wantCode(t, exitUnsupported)
	}
}

// The demo lists at its beginning the scenes that this backend cannot play, and plays the rest.
func TestDemoOnRabbitMQ(t *testing.T) {
	t.Parallel()
	r := runOK(t, "demo", "--speed=10", "--patience=2m", "--url", rabbitURL(t)) // a broker may be silent for a minute
	r.wantOutput(t, "It cannot cancel: ", "It cannot count all messages: ", "this backend cannot cancel", "timeout finds it answered")
	r.wantSummary(t, "cancelled 0 ", "early 0 lost 0 duplicates 0 ")
}
