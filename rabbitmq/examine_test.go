package rabbitmq_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend/admin"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/rabbitmq"
)

// examined returns the findings by their subjects.
func examined(ctx context.Context, t *testing.T, url string, opts ...rabbitmq.Option) map[string]admin.Finding {
	t.Helper()
	all := make(map[string]admin.Finding)
	for _, f := range allExamined(ctx, t, url, opts...) {
		all[f.About] = f
	}
	return all
}

func allExamined(ctx context.Context, t *testing.T, url string, opts ...rabbitmq.Option) []admin.Finding {
	t.Helper()
	b := newBackend(t, url, opts...)
	x, err := testenv.RetryOnBusyRabbit(ctx, func() (admin.Examination, error) { return b.Examine(ctx) })
	must(t, err)
	return x.Findings
}

// wantFinding checks a finding. A problem must have a remedy.
func wantFinding(t *testing.T, all map[string]admin.Finding, about string, s admin.Severity, text string) {
	t.Helper()
	f, ok := all[about]
	if !ok || f.Severity != s || !strings.Contains(f.Text, text) || s > admin.Fine && f.Remedy == "" {
		t.Errorf("about %s: got %v %+v; want %v and %q", about, f.Severity, f, s, text)
	}
}

// queuesOf lists the queues of a vhost.
func queuesOf(t *testing.T, server *testenv.RabbitServer, vhost string) []string {
	t.Helper()
	return strings.Fields(server.Ctl("list_queues", "-q", "--no-table-headers", "-p", vhost, "name"))
}

func TestExamine(t *testing.T) {
	t.Parallel()
	server := testenv.SharedRabbitMQ(t)
	vhost := server.Vhost(t)
	ctx := deadline(t, patience)
	url := server.VhostURL(vhost)
	all := examined(ctx, t, url)
	wantFinding(t, all, "quorum queues", admin.Fine, "can be declared")
	wantFinding(t, all, "dead-lettering", admin.Fine, "stream_queue")
	wantFinding(t, all, "alarms", admin.Fine, "takes messages")
	wantFinding(t, all, "undeliverable", admin.Fine, "no messages")
	if v := all["version"]; !strings.Contains(v.Text, "RabbitMQ ") || v.Severity > admin.Note {
		t.Errorf("version: %+v", v)
	}
	if qs := queuesOf(t, server, vhost); len(qs) > 0 {
		t.Errorf("left behind: %q", qs)
	}
	wantFinding(t, examined(ctx, t, url, rabbitmq.Classic()), "classic", admin.Warning, "lose messages")
}

// TestExamineUndeliverable has a message for a deleted queue.
func TestExamineUndeliverable(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	url := vhost(t)
	ctx := deadline(t, patience)
	slow := rabbitmq.Buckets(20 * time.Second) // the queue is gone before the message leaves the bucket
	b := newBackend(t, url, slow)
	q := openOn(t, b, "gone")
	must(t, q.Schedule(ctx, message("a", 10*time.Millisecond))...)
	must(t, q.Close(), b.Remove(ctx, "gone"))
	await(t, "the message to be undeliverable", func() bool {
		left, err := b.Remains(ctx, "gone")
		must(t, err)
		return slices.Equal(left, []string{"1 messages in delayq.v1.undeliverable"})
	})
	wantFinding(t, examined(ctx, t, url, slow), "undeliverable", admin.Warning, "1 messages in delayq.v1.undeliverable")
}

// TestRemove removes two queues one after the other, and their namespace. Nothing else remains.
func TestRemove(t *testing.T) {
	t.Parallel()
	server := testenv.SharedRabbitMQ(t)
	vhost := server.Vhost(t)
	ctx := deadline(t, patience)
	for name, opt := range map[string]rabbitmq.Option{"levels": rabbitmq.Grain(time.Second), "buckets": rabbitmq.Buckets(time.Second, time.Minute)} {
		b := newBackend(t, server.VhostURL(vhost), rabbitmq.Namespace(name), opt)
		one, two := openOn(t, b, "one"), openOn(t, b, "two")
		must(t, one.Schedule(ctx, message("a", 0))...)
		must(t, two.Schedule(ctx, message("b", 0))...)
		must(t, one.Close(), two.Close(), b.Remove(ctx, "one"))
		await(t, "one queue to be left", func() bool {
			left, err := b.Remains(ctx, "one", "two")
			must(t, err)
			return slices.Equal(left, []string{"1 messages in " + name + ".v1.q.two"})
		})
		must(t, b.Close()) // a backend declares the namespace again when its connection breaks
		must(t, b.Remove(ctx, "two"), b.Remove(ctx, "two"), b.RemoveNamespace(ctx), b.RemoveNamespace(ctx))
	}
	if qs := queuesOf(t, server, vhost); len(qs) > 0 {
		t.Errorf("queues left behind: %q", qs)
	}
	exchanges := server.Ctl("list_exchanges", "-q", "--no-table-headers", "-p", vhost, "name")
	if strings.Contains(exchanges, ".v1.") {
		t.Errorf("exchanges left behind: %q", exchanges)
	}
}

// TestExamineABadBroker examines a broker as users without permissions, and in an alarm.
func TestExamineABadBroker(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	ctx := deadline(t, patience)
	server := testenv.RabbitMQ(t, testenv.PrivateRabbit())
	vhost := server.Vhost(t)
	as := func(name string, may testenv.RabbitPermissions) map[string]admin.Finding {
		server.AddUser(name, password, vhost, may)
		return examined(ctx, t, server.UserURL(name, password, vhost))
	}
	wantFinding(t, as("configure", testenv.RabbitPermissions{Write: ".*", Read: ".*"}), "quorum queues", admin.Problem, "lacks a permission")
	wantFinding(t, as("write", testenv.RabbitPermissions{Configure: ".*", Read: ".*"}), "alarms", admin.Problem, "lacks a permission")
	server.SetMemoryAlarm(true)
	defer server.SetMemoryAlarm(false)
	wantFinding(t, examined(ctx, t, server.VhostURL(vhost)), "alarms", admin.Problem, "the broker takes no messages: low on memory")
	b := rabbitmq.New(server.UserURL("configure", "wrong", vhost))
	_, err := b.Examine(ctx)
	wantError(t, err, "the broker refused the user or password")
	must(t, b.Close())
}
