package rabbitmq_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/rabbitmq"
)

// wantError checks that an error has these texts, and shows no password.
func wantError(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want one with %q", texts)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q does not say %q", err, text)
		}
	}
	if strings.Contains(err.Error(), password) {
		t.Errorf("%q shows a password", err)
	}
}

const password = "pass-w0rd"

// TestOtherArguments opens a queue that exists with other arguments.
func TestOtherArguments(t *testing.T) {
	t.Parallel()
	url := vhost(t)
	ch := channel(t, url)
	_, err := ch.QueueDeclare("delayq.v1.q.taken", true, false, false, false, nil)
	must(t, err)
	b := newBackend(t, url, few)
	_, err = tryOpen(t, b, "taken")
	wantError(t, err, "declaring queue delayq.v1.q.taken", "other arguments", "another namespace")
	openOn(t, b, "free")
}

// TestPermissions opens, pushes, receives and dead-letters as users without permissions.
func TestPermissions(t *testing.T) {
	t.Parallel()
	server, vhost := sharedVhost(t)
	open(t, server.VhostURL(vhost))
	all := testenv.RabbitPermissions{Configure: ".*", Write: ".*", Read: ".*"}
	for name, c := range map[string]struct {
		may   testenv.RabbitPermissions
		texts []string
	}{
		"configure": {testenv.RabbitPermissions{Configure: "", Write: ".*", Read: ".*"}, []string{"declaring exchange delayq.v1.undeliverable", "lacks a permission", "configure to declare"}},
		"write":     {testenv.RabbitPermissions{Configure: ".*", Write: "", Read: ".*"}, []string{"binding queue delayq.v1.undeliverable", "lacks a permission", "write to publish and to bind a queue"}},
		"read":      {testenv.RabbitPermissions{Configure: ".*", Write: ".*", Read: ""}, []string{"lacks a permission", "read to consume"}},
	} {
		t.Run(name, func(t *testing.T) {
			server.AddUser(name, password, vhost, c.may)
			b := newBackend(t, server.UserURL(name, password, vhost))
			_, err := tryOpen(t, b, "q")
			wantError(t, err, c.texts...)
		})
	}
	ctx := deadline(t, patience)
	server.AddUser("worker", password, vhost, all)
	worker := queueOf(t)
	q := open(t, server.UserURL("worker", password, vhost))
	must(t, q.Schedule(ctx, message("a", 0))...)
	a := receiveAll(ctx, t, q, 1)[0] // for an hour
	must(t, q.Schedule(ctx, message("b", 0))...)
	t.Run("publish", func(t *testing.T) {
		server.AddUser("worker", password, vhost, testenv.RabbitPermissions{Configure: ".*", Write: `^delayq\.v1\.`, Read: ".*"})
		b := rabbitmq.New(server.UserURL("worker", password, vhost)) // an open channel caches permissions
		defer func() { must(t, b.Close()) }()
		q := openOn(t, b, worker)
		wantError(t, q.Schedule(ctx, message("c", time.Hour))[0], "publishing", "lacks a permission", "write to publish", "amq.default")
		wantError(t, q.Schedule(ctx, message("c", 0))[0], "publishing", "lacks a permission", "amq.default")
		held := receiveOne(ctx, t, q, "b")
		wantError(t, q.Dead(ctx, []backend.DeadLetterRequest{{Lease: held.Lease()}})[0], "publishing", "lacks a permission", "amq.default")
	})
	ack(ctx, t, q, a)
	t.Run("consume", func(t *testing.T) {
		server.AddUser("worker", password, vhost, testenv.RabbitPermissions{Configure: ".*", Write: ".*", Read: `^delayq\.v1\.(l|deliver|undel)`})
		server.CloseConnections(vhost) // an open channel caches permissions
		_, err := q.Receive(ctx, 1, time.Minute)
		wantError(t, err, "consuming from delayq.v1.q.", "lacks a permission", "read to consume")
	})
	server.AddUser("worker", password, vhost, all)
	ack(ctx, t, q, receiveOne(ctx, t, q, "b"))
}

// TestConnectFails connects with a wrong password, to a virtual host that does not exist, and to a
// port without a broker.
func TestConnectFails(t *testing.T) {
	t.Parallel()
	server := testenv.RabbitMQ(t, testenv.PrivateRabbit())
	server.AddUser("guest2", password, "/", testenv.RabbitPermissions{})
	server.AddVhost("closed")
	free := testenv.Proxy(t, server.Addr())
	free.Refuse(true)
	for name, c := range map[string]struct {
		url   string
		texts []string
	}{
		"password":   {server.UserURL("guest2", "another-"+"one", "/"), []string{"refused the user or password"}},
		"vhost":      {server.VhostURL("missing"), []string{"no such virtual host"}},
		"not for us": {server.UserURL("guest2", password, "closed"), []string{"no such virtual host, or the user may not use it"}},
		"no broker":  {"amqp://guest2:" + password + "@" + free.Addr() + "/", []string{"connecting to RabbitMQ", "connection refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend(t, c.url)
			_, err := tryOpen(t, b, "q")
			wantError(t, err, c.texts...)
			if got, want := errors.Is(err, backend.ErrUnavailable), name == "no broker"; got != want {
				t.Errorf("the error matches ErrUnavailable: %v, want %v", got, want)
			}
		})
	}
}

// TestOpenIsBounded opens on a broker that never replies, and closes.
func TestOpenIsBounded(t *testing.T) {
	proxy := testenv.Proxy(t, testenv.SharedRabbitMQ(t).Addr())
	proxy.Blackhole(true)
	b := rabbitmq.New("amqp://guest:" + password + "@" + proxy.Addr() + "/")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := b.Open(ctx, "q", quiet())
	wantError(t, err, context.DeadlineExceeded.Error())
	must(t, b.Close())
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
}
