package conformance_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/internal/testenv"
)

// The passwords of these tests: the right one, a wrong one, and the part of both that must not be
// shown.
const (
	secret  = "Zq7secretqZ"
	fitting = secret + "@/?#%&=: "
	wrong   = "not-" + secret
)

// An eavesdropper keeps all logs, spans and metrics of a queue.
type eavesdropper struct {
	mu      sync.Mutex
	said    bytes.Buffer
	spans   *tracetest.SpanRecorder
	metrics *sdkmetric.ManualReader
}

func (w *eavesdropper) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said.Write(p)
}

func (w *eavesdropper) heard() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said.Len() > 0
}

// Printf is for the logger of the client library.
func (w *eavesdropper) Printf(_ context.Context, format string, v ...any) {
	_, _ = fmt.Fprintf(w, format+"\n", v...)
}

func newEavesdropper() (*eavesdropper, []delayq.Option) {
	w := &eavesdropper{spans: tracetest.NewSpanRecorder(), metrics: sdkmetric.NewManualReader()}
	log := slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug, AddSource: true}))
	return w, []delayq.Option{
		delayq.WithLogger(log),
		delayq.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(w.spans))),
		delayq.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(w.metrics))),
	}
}

// mustHide looks through errors, logs, spans and metrics.
func (w *eavesdropper) mustHide(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		mustHideIn(t, "error", describe(err))
	}
	w.mu.Lock()
	mustHideIn(t, "log", w.said.String())
	w.mu.Unlock()
	for _, s := range w.spans.Ended() {
		mustHideIn(t, "span", fmt.Sprintf("%v %v %v %v", s.Name(), s.Attributes(), s.Events(), s.Status()))
	}
	var all metricdata.ResourceMetrics
	if err := w.metrics.Collect(t.Context(), &all); err != nil { // of a queue that cannot be counted
		mustHideIn(t, "metrics' error", describe(err))
	}
	for _, scope := range all.ScopeMetrics {
		mustHideIn(t, "metrics", fmt.Sprintf("%+v", scope))
	}
}

// mustHideIn finds the password in URLs too, where its beginning is not escaped.
func mustHideIn(t *testing.T, where, text string) {
	t.Helper()
	if strings.Contains(text, secret) {
		t.Errorf("the password is in the %s: %s", where, strings.ReplaceAll(text, secret, "<SECRET>"))
	}
}

// describe prints an error and all that it wraps in every way.
func describe(err error) string {
	if err == nil {
		return ""
	}
	text := fmt.Sprintf("%v\n%+v\n%#v\n%s\n", err, err, err, err)
	switch e := err.(type) { //nolint:errorlint // it walks the chain itself
	case interface{ Unwrap() error }:
		text += describe(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			text += describe(inner)
		}
	}
	return text
}

// TestPasswordsStaySecret opens with a wrong password, without a server, with TLS that fails, and
// with bad URLs, each with a debug log. It is not parallel: the client library has one log.
func TestPasswordsStaySecret(t *testing.T) {
	server := testenv.Redis(t, testenv.Private())
	must(t, server.Client(t).ConfigSet(t.Context(), "requirepass", fitting).Err())
	broker := testenv.RabbitMQ(t, testenv.PrivateRabbit())
	broker.AddUser("worker", fitting, "/", testenv.RabbitPermissions{Configure: ".*", Write: ".*", Read: ".*"})
	redisLogin, rabbitLogin := userinfo("", wrong), userinfo("worker", wrong)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	closed := l.Addr().String()
	must(t, l.Close())
	var urls []string
	for _, scheme := range []string{"zsetpoll://", "keyspace://", "redisson://"} {
		for _, query := range []string{"", "?tls=true", "?cluster=true", "?master=main&sentinel_password=" + wrong, "?db=x", "?colour=red", "?pool_size=" + wrong + "@"} {
			urls = append(urls, scheme+redisLogin+server.Addr()+"/q"+query, scheme+redisLogin+closed+"/q"+query)
		}
		urls = append(urls, scheme+redisLogin+server.Addr()+"/", scheme+"me:"+wrong+"@/q", scheme+"me:%zz"+wrong+"@"+closed+"/q", scheme+"me:1/"+wrong+"@"+closed+"/q",
			scheme+"me:1?"+wrong+"@"+closed+"/q", scheme+"me:1#"+wrong+"@"+closed+"/q", scheme+redisLogin+"no-such-host.invalid/q")
	}
	for _, scheme := range []string{"rabbitmq://", "rabbitmqs://"} {
		for _, rest := range []string{"/%2F/q", "/missing/q", "/q?hosts=" + closed, "/q?colour=red", "/q?grain=x", "/", "/a/b/c/d", "/q#x"} {
			urls = append(urls, scheme+rabbitLogin+broker.Addr()+rest, scheme+rabbitLogin+closed+rest)
		}
		urls = append(urls, scheme+"me:%zz"+wrong+"@"+closed+"/q", scheme+"me:1#"+wrong+"@"+closed+"/q", scheme+rabbitLogin+"no-such-host.invalid/q")
	}
	postgresLogin := userinfo("me", wrong)
	for _, rest := range []string{"/db?queue=q", "/db", "/a/b/c?queue=q", "/db?queue=q&colour=red", "/db?queue=q&poll=x", "/db?queue=q&sslmode=x", "/db?queue=q#x"} {
		for _, scheme := range []string{"postgres://", "postgresql://", "pg://"} {
			urls = append(urls, scheme+postgresLogin+closed+rest)
		}
	}
	urls = append(urls, "pg://"+postgresLogin+closed+"/db/q", "postgres://me:%zz"+wrong+"@"+closed+"/db?queue=q", "postgres://me:1/"+wrong+"@"+closed+"/db?queue=q",
		"postgres://me:1?"+wrong+"@"+closed+"/db?queue=q", "postgres://me:1#"+wrong+"@"+closed+"/db?queue=q", "postgres://"+postgresLogin+"no-such-host.invalid/db?queue=q")
	urls = append(urls, "memory://me:"+wrong+"@h/q", "nosuch://me:"+wrong+"@h/q", "://"+wrong)
	w, opts := newEavesdropper()
	defer quietly(w)()
	for _, text := range urls {
		ctx, cancel := context.WithTimeout(t.Context(), attacked)
		q, err := delayq.Open(ctx, text, opts...)
		if err == nil {
			t.Errorf("opened: %s", strings.ReplaceAll(text, secret, "<SECRET>"))
			must(t, q.Close())
		}
		w.mustHide(t, err)
		cancel()
	}
}

func userinfo(user, password string) string { return url.UserPassword(user, password).String() + "@" }

// quietly sends the log of Redis's client library to the eavesdropper.
func quietly(w *eavesdropper) (restore func()) {
	redis.SetLogger(w)
	return func() { redis.SetLogger(silence{}) }
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// TestPasswordsStaySecretWhenTheyChange changes the server's password while queues are at work.
func TestPasswordsStaySecretWhenTheyChange(t *testing.T) {
	testenv.In(t, testenv.All)
	server := testenv.Redis(t, testenv.Private())
	admin := server.Client(t, func(o *redis.Options) { o.MaxRetries = -1 })
	broker := testenv.RabbitMQ(t, testenv.PrivateRabbit())
	may := testenv.RabbitPermissions{Configure: ".*", Write: ".*", Read: ".*"}
	broker.AddUser("worker", fitting, "/", may)
	must(t, admin.Do(t.Context(), "acl", "setuser", "worker", "on", ">"+fitting, "~*", "&*", "+@all").Err())
	at := userinfo("worker", fitting)
	for name, text := range map[string]string{
		"zsetpoll": "zsetpoll://" + at + server.Addr() + "/a", "keyspace": "keyspace://" + at + server.Addr() + "/b", "redisson": "redisson://" + at + server.Addr() + "/c",
		"rabbitmq": "rabbitmq://" + at + broker.Addr() + "/%2F/d",
	} {
		t.Run(name, func(t *testing.T) {
			w, opts := newEavesdropper()
			defer quietly(w)()
			q, err := delayq.Open(t.Context(), text, opts...)
			must(t, err)
			defer func() { w.mustHide(t, q.Close()) }()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			done := make(chan error, 1)
			go func() { done <- q.Consume(ctx, func(context.Context, *delayq.Delivery) error { return nil }) }()
			if name == "rabbitmq" {
				broker.AddUser("worker", "another", "/", may)
				broker.CloseConnections("/")
			} else {
				must(t, admin.Do(ctx, "acl", "setuser", "worker", "resetpass", ">another").Err())
				must(t, admin.Do(ctx, "client", "kill", "user", "worker").Err())
				defer func() { must(t, admin.Do(t.Context(), "acl", "setuser", "worker", "resetpass", ">"+fitting).Err()) }()
			}
			w.mustHide(t, pushUntilRefused(t, q))
			stop()
			w.mustHide(t, <-done)
			if !w.heard() {
				t.Error("the eavesdropper has no log")
			}
		})
	}
}

func pushUntilRefused(t *testing.T, q delayq.Queue) error {
	t.Helper()
	for end := time.Now().Add(attacked); time.Now().Before(end); {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		_, err := q.Push(ctx, nil)
		cancel()
		if err != nil {
			return err
		}
	}
	t.Error("the old password still opens the door")
	return nil
}

// TestTheEavesdropperHears finds a secret wherever an error has it.
func TestTheEavesdropperHears(t *testing.T) {
	for text, told := range map[string]error{
		"wrapped":  fmt.Errorf("opening: %w", errors.New(secret)),
		"joined":   errors.Join(errors.New("a"), &delayq.OpError{Op: "open", Err: errors.New(secret)}),
		"a field":  &net.OpError{Op: "dial", Err: errors.New("refused"), Source: &net.UnixAddr{Name: secret}},
		"a URL in": &url.Error{Op: "parse", URL: "redis://:" + secret + "@h", Err: errors.New("bad")},
	} {
		if !strings.Contains(describe(told), secret) {
			t.Errorf("not heard: %s", text)
		}
	}
}
