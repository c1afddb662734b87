package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/conformance"
	"github.com/delayq/delayq/internal/testenv"
)

// verified reads the output of --json: the verdicts, and the summary.
func verified(t *testing.T, r result) (all map[string]checkJSON, sum verifyJSON) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	last := len(lines) - 1
	if err := json.Unmarshal([]byte(lines[last]), &sum); err != nil {
		t.Fatalf("%v: %s", err, r.stdout)
	}
	all = make(map[string]checkJSON)
	if last > 0 {
		for _, c := range decodeLines[checkJSON](t, strings.Join(lines[:last], "\n")) {
			all[c.Check] = c
		}
	}
	if len(all) != sum.Checks || sum.Kept+sum.Broken+sum.NotOffered+sum.NotJudged != sum.Checks {
		t.Errorf("%d lines; the last one says %+v", len(all), sum)
	}
	return all, sum
}

// TestVerifyMemory runs the whole suite. It needs a process of its own: a check looks for leaked
// goroutines, and those of other tests would count.
func TestVerifyMemory(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	r := inProcess(t, "verify", "memory:///orders", "--tick=60ms", "--slack=2s", "--json") // the slack is for a busy machine
	r.wantCode(t, exitOK)
	all, sum := verified(t, r)
	kept := 0
	for _, c := range conformance.Checks() {
		want := "kept"
		if c.Name == "full" || c.Name == "wake-up-by-commit" || strings.HasPrefix(c.Name, "transaction") {
			want = "not offered" // the URL sets no limit, and memory has no transactions
		} else {
			kept++
		}
		if got := all[c.Name]; got.Verdict != want || got.Rule != c.Invariant || got.Says != c.Rule {
			t.Errorf("check %s: got %+v", c.Name, got)
		}
	}
	if sum.Kept != kept || len(sum.Left) > 0 {
		t.Errorf("got %+v", sum)
	}
}

// fewChecks are quick checks, one that looks for leftover keys and one that opens queues of other
// names.
const fewChecks = "^(never-early|lists-queues|leaves-nothing|queues-are-apart|lease-ends|cancel)$"

// TestVerifyRedis keeps the queue's messages, and leaves no key.
func TestVerifyRedis(t *testing.T) {
	t.Parallel()
	schemes := []string{"zsetpoll"}
	if testenv.Runs(t, testenv.All) {
		schemes = append(schemes, "keyspace", "redisson")
	}
	for _, scheme := range schemes {
		server := testenv.Redis(t, testenv.Private())
		client := server.Client(t)
		url := urlOf(server, scheme)
		if scheme == "redisson" {
			url += "?codec=envelope"
		}
		push(t, openQueue(t, url), "theirs")
		var before string
		until(t, "the handle to enter its name, and to count its push", func() bool {
			before = keysOf(t, client)
			return strings.Contains(before, "queues") && (scheme == "redisson" || strings.Contains(before, ":counts"))
		})
		r := runOK(t, "verify", url, "--run", fewChecks)
		r.wantOutput(t, "never-early", "leaves-nothing", " 0 broken, 0 not offered, 0 not judged\n")
		if after := keysOf(t, client); len(before) == 0 || after != before {
			t.Errorf("%s: keys before: %s; after: %s", scheme, before, after)
		}
	}
}

func keysOf(t *testing.T, client *redis.Client) string {
	t.Helper()
	keys, err := client.Keys(t.Context(), "*").Result()
	mustDo(t, err)
	slices.Sort(keys)
	return strings.Join(keys, " ")
}

func TestVerifyRabbitMQ(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	server := testenv.SharedRabbitMQ(t)
	_ = rabbitURL(t) // opens a queue of another vhost, patiently: in this one nothing may be left
	vhost := server.Vhost(t)
	url := "rabbitmq" + strings.TrimPrefix(server.VhostURL(vhost), "amqp") + "/orders"
	r := runOK(t, "verify", url, "--run", fewChecks, "--json")
	all, sum := verified(t, r)
	if c := all["cancel"]; sum.NotOffered == 0 || c.Verdict != "not offered" || !strings.Contains(c.Detail, "rabbitmq does not claim") {
		t.Errorf("cancel: %+v", c)
	}
	if all["never-early"].Verdict != "kept" || all["leaves-nothing"].Verdict != "kept" {
		t.Errorf("got %+v", all)
	}
	if qs := server.Ctl("list_queues", "-q", "--no-table-headers", "-p", vhost, "name"); strings.TrimSpace(qs) != "" {
		t.Errorf("left behind: %s", qs)
	}
}

// TestVerifyBroken shows the check that proves it.
func TestVerifyBroken(t *testing.T) {
	t.Parallel()
	const early = "--tick=20s" // the message comes ten seconds early, which a busy machine does not take away
	for _, fault := range []struct{ scheme, check, tick string }{
		{"broken-early", "never-early", early}, {"broken-twice", "done-is-done", "--tick=60ms"}, {"broken-dead", "dead-list", "--tick=60ms"},
	} {
		r := delayqRun(t, "verify", fault.scheme+":///q", fault.tick, "--run", "^"+fault.check+"$")
		r.wantCode(t, exitBroken)
		r.wantOutput(t, fault.check, "broken\n", "the rule: ", " 1 broken")
		r.wantSaid(t, "1 of 1 rule: broken")
	}
	r := delayqRun(t, "verify", "broken-early:///q", early, "--run=^never-early$", "--json")
	r.wantCode(t, exitBroken)
	if all, _ := verified(t, r); all["never-early"].Verdict != "broken" || all["never-early"].Detail == "" {
		t.Errorf("got %+v", all)
	}
}

// TestVerifyTextOnly has a queue whose codec accepts text only.
func TestVerifyTextOnly(t *testing.T) {
	t.Parallel()
	r := delayqRun(t, "verify", redisURL(t, "redisson"), "--run=^(content-intact|never-early)$")
	r.wantCode(t, exitPartly)
	r.wantOutput(t, "not judged\n      content-intact: the store rejects the body", "codec bytes", " 1 kept, 0 broken, 0 not offered, 1 not judged")
}

func TestVerifyNotOffered(t *testing.T) {
	t.Parallel()
	r := runOK(t, "verify", "plain:///q", "--run=^cancel$")
	r.wantOutput(t, "not offered\n      ", "does not claim cancelling", " 0 kept, 0 broken, 1 not offered")
}

// verifyUntil runs the suite on a server of its own, and calls f once the suite is at work there.
func verifyUntil(t *testing.T, f func(server *testenv.RedisServer, stop context.CancelFunc)) (result, *testenv.RedisServer) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	server := testenv.Redis(t, testenv.Private())
	client := server.Client(t)
	done := make(chan result, 1)
	go func() {
		done <- runIn(ctx, strings.NewReader(""), "verify", urlOf(server, "zsetpoll"), "--tick=30s", "--run=^never-early$") // it does not end before f on a busy machine
	}()
	until(t, "queue of the suite", func() bool { return len(client.Keys(ctx, "*{verify-*").Val()) > 0 })
	f(server, stop)
	return <-done, server
}

// TestVerifyInterrupted removes its queues.
func TestVerifyInterrupted(t *testing.T) {
	t.Parallel()
	r, server := verifyUntil(t, func(_ *testenv.RedisServer, stop context.CancelFunc) { stop() })
	r.wantCode(t, exitInterrupted)
	if strings.Contains(r.stdout, "broken\n") {
		t.Errorf("a check that was stopped is called broken:\n%s", r.stdout)
	}
	if left := keysOf(t, server.Client(t)); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

// TestVerifyStoreGone does not call a rule broken because the server went down.
func TestVerifyStoreGone(t *testing.T) {
	t.Parallel()
	r, _ := verifyUntil(t, func(server *testenv.RedisServer, _ context.CancelFunc) { server.Kill() })
	r.wantCode(t, exitStore)
	r.wantOutput(t, " 0 broken", "Left in the store:\n  verify-")
	r.wantSaid(t, "check never-early: connecting to")
}

// TestScratchRejectsOtherQueues opens no queue outside the scratch namespace.
func TestScratchRejectsOtherQueues(t *testing.T) {
	t.Parallel()
	s := newScratch("memory:///orders", "verify", nil)
	b, err := s.open(t.Context())
	mustDo(t, err)
	for _, name := range []string{"orders", "x", "verify-", strings.TrimSuffix(s.prefix, ".")} {
		if _, err := delayq.New(t.Context(), name, delayq.WithBackend(b)); !errors.Is(err, delayq.ErrInvalid) {
			t.Errorf("queue %q: got %v", name, err)
		}
	}
	q, err := delayq.New(t.Context(), s.prefix+"orders", delayq.WithBackend(b))
	mustDo(t, err)
	if err := q.Close(); err != nil {
		t.Error(err)
	}
}
