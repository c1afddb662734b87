package rabbitmq_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/backend/admin"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/rabbitmq"
)

// policy sets a policy for queues whose names match.
func policy(server *testenv.RabbitServer, vhost, pattern, definition string) {
	server.Ctl("set_policy", "-p", vhost, "--apply-to", "queues", "test", pattern, definition)
}

// TestSurplusGoesToUndeliverable bounds one queue by a policy. Messages of another queue in the same levels
// come, and the surplus of the first goes to undeliverable.
func TestSurplusGoesToUndeliverable(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	const n, room, delay = 300, 10, 500 * time.Millisecond
	server, vhost := sharedVhost(t)
	ctx := deadline(t, patience)
	url := server.VhostURL(vhost)
	b := newBackend(t, url)
	full, other := openOn(t, b, "full"), openOn(t, b, "other")
	policy(server, vhost, `^delayq\.v1\.q\.full$`, `{"max-length":10}`)
	must(t, full.Schedule(ctx, batch("full", n, delay))...)
	must(t, other.Schedule(ctx, batch("other", 10, delay))...)
	drain(ctx, t, other, 10)
	ch := channel(t, url)
	await(t, "the surplus", func() bool { return ready(t, ch, undeliverable) == n-room })
	drain(ctx, t, full, room)
}

// TestQueueRefuses has a policy by which a full queue refuses messages. The push and the log report
// it.
func TestQueueRefuses(t *testing.T) {
	t.Parallel()
	server, vhost := sharedVhost(t)
	ctx := deadline(t, patience)
	b := newBackend(t, server.VhostURL(vhost))
	log := new(logBuffer)
	var refused atomic.Int64
	q, err := tryOpenWith(t, b, "full", backend.Options{Logger: log.logger(), Refused: func() { refused.Add(1) }})
	must(t, err)
	if !strings.Contains(log.String(), "180 s late") {
		t.Errorf("Open does not say how late messages come after a crash: %s", log)
	}
	policy(server, vhost, `^delayq\.v1\.q\.full$`, `{"max-length":1,"overflow":"reject-publish"}`)
	await(t, "a refusal", func() bool { // a quorum queue learns its length with a delay
		err := q.Schedule(ctx, message("m", 0))[0]
		return errors.Is(err, backend.ErrUnavailable)
	})
	if !strings.Contains(log.String(), "reject-publish") || refused.Load() != 1 {
		t.Errorf("reported %d times; want once, and the policy in the log: %s", refused.Load(), log)
	}
}

// testRefusedDelayedMessages fills a queue only with delayed messages, so that no push gets the
// refusal. A backend with the management API reports it, and warns before the queue is full.
func testRefusedDelayedMessages(ctx context.Context, t *testing.T, server *testenv.RabbitServer, vhost, at string) {
	url := server.VhostURL(vhost)
	policy(server, vhost, `^delayq\.v1\.q\.(full|empty)$`, `{"max-length":3,"overflow":"reject-publish"}`)
	pushes := newBackend(t, url)
	openOn(t, pushes, "empty")
	must(t, openOn(t, pushes, "full").Schedule(ctx, batch("m", 10, 10*time.Second))...) // once their time is over, a slow push goes straight to the full queue
	awaitEvery(t, examinePause, "findings about the full queue, and about both queues that refuse", func() bool {
		return found(ctx, t, url, at, admin.Problem, "full now on delayq.v1.q.full") &&
			found(ctx, t, url, at, admin.Problem, "reject-publish on delayq.v1.q.empty, delayq.v1.q.full")
	})
	b := newBackend(t, url, rabbitmq.Management(at))
	log, refused := new(logBuffer), make(chan string, 2)
	for _, name := range []string{"full", "empty"} {
		_, err := tryOpenWith(t, b, name, backend.Options{Logger: log.logger(), Refused: func() { refused <- name }})
		must(t, err)
	}
	select {
	case name := <-refused:
		if name != "full" || !strings.Contains(log.String(), "a queue refuses messages") {
			t.Errorf("%q is reported; the log has %s", name, log)
		}
	case <-ctx.Done():
		t.Fatalf("nothing is reported; the log has %s", log)
	}
	await(t, "a warning about the other queue", func() bool { return strings.Contains(log.String(), "once it is full") })
	if len(refused) > 0 {
		t.Errorf("%q is reported, too", <-refused)
	}
}

// found reports whether Examine returns such a finding about policies.
func found(ctx context.Context, t *testing.T, url, management string, s admin.Severity, text string) bool {
	t.Helper()
	return slices.ContainsFunc(allExamined(ctx, t, url, rabbitmq.Management(management)), func(f admin.Finding) bool {
		return f.About == "policies" && f.Severity == s && strings.Contains(f.Text, text)
	})
}

// A logBuffer is safe for concurrent use.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestPoliciesLoseNothing has policies that take messages out of queues, or send them elsewhere.
// All messages are handed out or go to undeliverable.
func TestPoliciesLoseNothing(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	const n = 30
	for what, c := range map[string]struct {
		pattern, definition string
		comes               bool
	}{
		"message-ttl":             {`^delayq\.v1\.q\.`, `{"message-ttl":1}`, false},
		"max-length-bytes":        {`^delayq\.v1\.q\.`, `{"max-length-bytes":1}`, false},
		"dead-letter-routing-key": {`^delayq\.v1\.w`, `{"dead-letter-routing-key":"elsewhere"}`, true},
		"level ttl":               {`^delayq\.v1\.w`, `{"message-ttl":50}`, true},
		"level length":            {`^delayq\.v1\.w`, `{"max-length":10}`, true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server, vhost := sharedVhost(t)
			ctx := deadline(t, patience)
			url := server.VhostURL(vhost)
			q, ch := open(t, url), channel(t, url)
			policy(server, vhost, c.pattern, c.definition)
			must(t, q.Schedule(ctx, batch("m", n, 700*time.Millisecond))...)
			if c.comes {
				drain(ctx, t, q, n)
			} else {
				await(t, "the messages that were taken out", func() bool { return ready(t, ch, undeliverable) == n })
			}
		})
	}
}

// examinePause is between two looks for a finding. Each has the management API list 200 queues, for
// which Examine gives it 5 s. A busy broker that gets no pause may need longer each time, and then no
// finding comes.
const examinePause = time.Second

// TestExaminePolicies has policies of each kind, and looks for their findings.
func TestExaminePolicies(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	ctx := deadline(t, 4*patience) // for several policies
	at := freeAddr(t)
	_, port, err := net.SplitHostPort(at)
	must(t, err)
	server := testenv.RabbitMQ(t, testenv.PrivateRabbit(), testenv.RabbitPlugins("rabbitmq_management"),
		testenv.RabbitConfig("management.tcp.ip", "127.0.0.1"), testenv.RabbitConfig("management.tcp.port", port))
	uri, err := amqp.ParseURI(server.URL())
	must(t, err)
	server.Ctl("set_user_tags", uri.Username, "management")
	vhost := server.Vhost(t)
	url := server.VhostURL(vhost)
	openOn(t, newBackend(t, url), "orders")
	awaitEvery(t, examinePause, "a finding about no policy", func() bool { // the management API may be slow at first
		return found(ctx, t, url, at, admin.Fine, "no policy takes messages away")
	})
	testManagementCounts(ctx, t, url, at)
	now, tries := "", 0
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("after %d tries for %s: %+v\n%s", tries, now, allExamined(context.Background(), t, url, rabbitmq.Management(at)),
				server.Ctl("list_queues", "-q", "-p", vhost, "name", "policy", "effective_policy_definition"))
		}
	})
	for definition, want := range map[string]struct {
		pattern  string
		severity admin.Severity
		text     string
	}{
		`{"max-length":5,"overflow":"reject-publish"}`: {`^delayq\.v1\.q\.`, admin.Problem, "delayed messages of all queues stand still"},
		`{"max-length":5}`:                        {`^delayq\.v1\.q\.`, admin.Warning, "max-length on delayq.v1.q.orders"},
		`{"message-ttl":5000}`:                    {`^delayq\.v1\.dead\.`, admin.Warning, "message-ttl on delayq.v1.dead.orders"},
		`{"expires":500000}`:                      {`^delayq\.v1\.w`, admin.Problem, "deletes queues in which messages wait"},
		`{"dead-letter-routing-key":"elsewhere"}`: {`^delayq\.v1\.w`, admin.Warning, "and 198 more"},
		`{"delivery-limit":5}`:                    {`^delayq\.v1\.q`, admin.Warning, "delivery-limit"},
	} {
		policy(server, vhost, want.pattern, definition)
		now, tries = definition, 0
		awaitEvery(t, examinePause, definition+": "+want.text, func() bool { // the broker applies a policy to one queue after the other
			tries++
			return found(ctx, t, url, at, want.severity, want.text)
		})
	}
	testRefusedDelayedMessages(ctx, t, server, vhost, at)
	free := freeAddr(t)
	wantFinding(t, examined(ctx, t, url, rabbitmq.Management(free)), "policies", admin.Note, "has no way to read policies")
	wantFinding(t, examined(ctx, t, url), "after a crash", admin.Note, "180 s")
}

// freeAddr returns an address without a listener.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { must(t, l.Close()) }()
	return l.Addr().String()
}
