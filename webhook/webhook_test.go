package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/webhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A receiver keeps the requests, and replies as it is told.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
}

func (r *receiver) got() []*http.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.requests)
}

func newReceiver(t *testing.T, reply http.HandlerFunc) *receiver {
	t.Helper()
	r := new(receiver)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		r.requests, r.bodies = append(r.requests, req), append(r.bodies, string(body))
		r.mu.Unlock()
		reply(w, req)
	}))
	t.Cleanup(r.Close)
	return r
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func post(t *testing.T, d *delayq.Delivery, opts ...webhook.Option) error {
	t.Helper()
	h, err := webhook.New(opts...)
	must(t, err)
	return h(t.Context(), d)
}

// signatures are of two secrets, as Standard Webhooks separates them.
var signatures = regexp.MustCompile(`^v1,[A-Za-z0-9+/]{43}= v1,[A-Za-z0-9+/]{43}=$`)

func TestRequest(t *testing.T) {
	r := newReceiver(t, status(http.StatusNoContent))
	due := time.Date(2030, 1, 31, 18, 0, 0, 250_000_000, time.UTC)
	must(t, post(t, &delayq.Delivery{
		ID: "order 18/é.1\n", Body: []byte(`{"paid":false}`), Due: due, Attempt: 3,
		Headers: map[string]string{"shop": "north", "host": "evil", "two\r\nlines": "x", "lines": "a\r\nwebhook-id: b", "webhook-id": "forged"},
	}, webhook.To(r.URL+"/hook?token=x"), webhook.Secret(strings.Repeat("s", 24)), webhook.Secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")))
	got := r.got()[0]
	for name, want := range map[string]string{
		"webhook-id": "order%2018%2F%C3%A9%2E1%0A", "delayq-attempt": "3", "delayq-due": "2030-01-31T18:00:00.25Z", "content-type": "application/json",
		"delayq-header-shop": "north", "delayq-header-host": "evil", "delayq-header-webhook-id": "forged", "delayq-header-lines": "",
	} {
		if value := got.Header.Get(name); value != want {
			t.Errorf("%s: %q; want %q", name, value, want)
		}
	}
	if r.bodies[0] != `{"paid":false}` || got.Method != http.MethodPost || got.URL.String() != "/hook?token=x" || got.Host != strings.TrimPrefix(r.URL, "http://") {
		t.Errorf("got %s %s on %s with %q", got.Method, got.URL, got.Host, r.bodies[0])
	}
	if len(got.Header["Webhook-Id"]) != 1 || !signatures.MatchString(got.Header.Get("webhook-signature")) {
		t.Errorf("headers: %v", got.Header)
	}
}

func TestContentType(t *testing.T) {
	r := newReceiver(t, status(http.StatusOK))
	for i, c := range []struct{ body, given, want string }{
		{`[1]`, "", "application/json"},
		{"hello", "", "text/plain; charset=utf-8"},
		{"\xff", "", "application/octet-stream"},
		{"hello", "text/csv", "text/csv"},
		{"hello", "text/csv\r\nx: y", "text/plain; charset=utf-8"},
	} {
		must(t, post(t, &delayq.Delivery{Body: []byte(c.body), Headers: map[string]string{"content-type": c.given}}, webhook.To(r.URL)))
		if got := r.got()[i].Header.Get("content-type"); got != c.want {
			t.Errorf("%q with %q is sent as %q; want %q", c.body, c.given, got, c.want)
		}
	}
}

// TestReplies has the receiver reply in every way.
func TestReplies(t *testing.T) {
	for name, c := range map[string]struct {
		reply      http.HandlerFunc
		done, dead bool
		after      time.Duration
		text       string
	}{
		"200": {reply: status(200), done: true},
		"202": {reply: status(202), done: true},
		"204": {reply: status(204), done: true},
		"404": {reply: status(404), text: "404 Not Found"},
		"410": {reply: status(410), dead: true, text: "410 Gone"},
		"500 text": {reply: func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, strings.Repeat("é", 200), http.StatusInternalServerError)
		}, text: "500 Internal Server Error: éé"},
		"503 later": {reply: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(http.StatusServiceUnavailable)
		}, after: 2 * time.Minute, text: "503"},
		"503 at once": {reply: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
		}, text: "503"},
		"503 since long": {reply: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "Fri, 31 Dec 1999 23:59:59 GMT")
			w.WriteHeader(http.StatusServiceUnavailable)
		}, text: "503"},
		"429 much later": {reply: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1000000000")
			w.WriteHeader(http.StatusTooManyRequests)
		}, after: 24 * time.Hour, text: "429"},
		"429 in ages": {reply: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "99999999999999999999")
			w.WriteHeader(http.StatusTooManyRequests)
		}, after: 24 * time.Hour, text: "429"},
		"redirect": {reply: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, text: "307"},
		"cut": {reply: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, text: "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReceiver(t, c.reply)
			err := post(t, &delayq.Delivery{Body: []byte("x")}, webhook.To(r.URL+"/hook?token=hidden"))
			var later *delayq.RetryAfterError
			switch {
			case c.done:
				must(t, err)
			case err == nil || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "hidden"):
				t.Errorf("got %v; want %s", err, c.text)
			case errors.Is(err, delayq.ErrDeadLetter) != c.dead:
				t.Errorf("a dead letter: %t; want %t", !c.dead, c.dead)
			case errors.As(err, &later) != (c.after > 0) || later != nil && later.Delay != c.after:
				t.Errorf("got %v; want another try after %v", later, c.after)
			}
			if len(r.got()) != 1 {
				t.Errorf("%d requests", len(r.got()))
			}
		})
	}
}

// Errors show the path of a URL that a message names, and not that of To, which may be a secret.
func TestShownURL(t *testing.T) {
	fails := newReceiver(t, status(http.StatusInternalServerError)).URL
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	for name, url := range map[string]string{"fails": fails, "is down": down.URL} {
		err := post(t, &delayq.Delivery{}, webhook.To(url+"/T0/secret?token=secret"))
		if err == nil || strings.Contains(err.Error(), "T0") || !strings.Contains(err.Error(), "posting to "+url+": ") {
			t.Errorf("To %s: %v", name, err)
		}
		d := &delayq.Delivery{Headers: map[string]string{webhook.URLHeader: url + "/hooks/17?token=secret"}}
		err = post(t, d, webhook.To(url+"/hooks/17"), webhook.Allow(url+"/hooks"))
		if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "posting to "+url+"/hooks/17: ") {
			t.Errorf("the URL of a message %s: %v", name, err)
		}
	}
}

func TestTimeout(t *testing.T) {
	end := make(chan struct{})
	r := newReceiver(t, func(http.ResponseWriter, *http.Request) { <-end })
	defer close(end)
	if err := post(t, &delayq.Delivery{}, webhook.To(r.URL), webhook.Timeout(time.Second)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// TestSwitchingProtocols replies that the connection is for another protocol from now on, and then
// says nothing: the worker does not wait for it.
func TestSwitchingProtocols(t *testing.T) {
	end := make(chan struct{})
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n")
		<-end
		_ = conn.Close()
	})
	late := time.AfterFunc(time.Minute, func() { close(end) })
	err := post(t, &delayq.Delivery{}, webhook.To(r.URL), webhook.Timeout(10*time.Second))
	if !late.Stop() {
		t.Fatal("the worker waited for the receiver")
	}
	close(end)
	if err == nil || !strings.Contains(err.Error(), "101 Switching Protocols") {
		t.Errorf("got %v", err)
	}
}

// TestClosedMeanwhile closes a connection that waited for the next request when that request comes.
// It goes to another connection, and is no failure.
func TestClosedMeanwhile(t *testing.T) {
	var conns sync.Map
	r := newReceiver(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.Header["Idempotency-Key"] != nil {
			t.Error("the key was sent")
		}
		if _, again := conns.LoadOrStore(r.RemoteAddr, true); again {
			panic(http.ErrAbortHandler)
		}
	})
	h, err := webhook.New(webhook.To(r.URL))
	must(t, err)
	for range 3 {
		must(t, h(t.Context(), &delayq.Delivery{Body: []byte("x")}))
	}
	if bodies := strings.Join(r.bodies, ""); len(bodies) != len(r.got()) {
		t.Errorf("%d bodies in %d requests", len(bodies), len(r.got()))
	}
}

// TestLongReplies has the receiver fill the head of its reply. Little of it is in the error, which
// is a line of the log in each attempt, and the reason of a dead letter.
func TestLongReplies(t *testing.T) {
	long := strings.Repeat("x", 60_000)
	for _, head := range []string{"503 " + long, long, "302 Found\r\nLocation: http://" + long + ":x/"} {
		r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 "+head+"\r\n\r\n")
			_ = conn.Close()
		})
		if err := post(t, &delayq.Delivery{}, webhook.To(r.URL)); err == nil || len(err.Error()) > 1100 {
			t.Errorf("%.20s: %d bytes: %.200v", head, len(fmt.Sprint(err)), err)
		}
	}
}

// TestTargets names URLs in messages. Those that may not be posted to make dead letters.
func TestTargets(t *testing.T) {
	r := newReceiver(t, status(http.StatusOK))
	for target, allowed := range map[string]bool{
		r.URL + "/hooks":             true,
		r.URL + "/hooks/":            true,
		r.URL + "/hooks/17?x=/../..": true,
		strings.Replace(r.URL, "http", "HTTP", 1) + "/hooks/a": true,
		"":                                                  false,
		"/hooks":                                            false,
		r.URL:                                               false,
		r.URL + "/hooksmith":                                false,
		r.URL + "/hooks/../admin":                           false,
		r.URL + "/hooks/..;a/admin":                         false,
		r.URL + "/hooks/a;b=..":                             true,
		r.URL + "/hooks/%2e%2e/admin":                       false,
		r.URL + "/hooks/..%2fadmin":                         false,
		r.URL + "/hooks//admin":                             false,
		r.URL + `/hooks/..\admin`:                           false,
		r.URL + "/hooks/%252e%252E/admin":                   false,
		r.URL + "/hooks/%2e%252e/100%25":                    false,
		r.URL + "/hooks/..%252fadmin":                       false,
		r.URL + "/hooks/..%255Cadmin":                       false,
		r.URL + "/hooks/..%253b/admin":                      false,
		r.URL + "/hooks/%2520../admin":                      false,
		r.URL + "/hooks/..%20/admin":                        false,
		r.URL + "/hooks/..%09/admin":                        false,
		r.URL + "/hooks/%c0%ae%c0%ae/admin":                 false,
		r.URL + "/hooks/a%0d%0a":                            false,
		r.URL + "/hooks/v1.2/100%25/%C3%A9/a%20b":           true,
		r.URL + "/hooks/.../a":                              true,
		r.URL + "/hooks#x":                                  false,
		r.URL + "0/hooks":                                   false,
		"ftp" + r.URL[4:] + "/hooks":                        false,
		"https" + r.URL[4:] + "/hooks":                      false,
		strings.Replace(r.URL, "//", "//me@", 1) + "/hooks": false,
		strings.Replace(r.URL, "//", "//example.org@", 1) + "/hooks":                          false,
		strings.Replace(r.URL, "127.0.0.1", "127.0.0.2", 1) + "/hooks":                        false,
		strings.Replace(r.URL, "127.0.0.1", "127.0.0.1.example.org", 1) + "/hooks":            false,
		strings.Replace(r.URL, "http://127.0.0.1", "http://[::ffff:127.0.0.1]", 1) + "/hooks": false,
	} {
		before := len(r.got())
		err := post(t, &delayq.Delivery{Headers: map[string]string{webhook.URLHeader: target}}, webhook.To(r.URL+"/default"), webhook.Allow(r.URL+"/hooks"))
		if allowed != (err == nil) || errors.Is(err, delayq.ErrDeadLetter) == allowed || errors.Is(err, delayq.ErrInvalid) == allowed {
			t.Errorf("%q: %v", target, err)
		}
		if sent := len(r.got()) > before; sent != allowed {
			t.Errorf("%q was sent: %t", target, sent)
		}
	}
	for _, c := range []struct {
		target, prefix string
		allowed        bool
	}{
		{"/hooks/", "/hooks/", true}, {"/hooks/17", "/hooks/", true}, {"/hooks", "/hooks/", false}, {"/hooks?x=1", "/hooks/", false},
		{"", "", true}, {"", "/", true}, {"/", "", true}, {"?x", "/", true}, {"/hooks", "/", true}, {"/hooks", "", true},
	} {
		err := post(t, &delayq.Delivery{Headers: map[string]string{webhook.URLHeader: r.URL + c.target}}, webhook.Allow(r.URL+c.prefix))
		if c.allowed != (err == nil) {
			t.Errorf("%q below %q: %v", c.target, c.prefix, err)
		}
	}
	if err := post(t, &delayq.Delivery{}, webhook.Allow(r.URL)); !errors.Is(err, delayq.ErrDeadLetter) {
		t.Errorf("without a URL: %v", err)
	}
}

// TestQuery has characters in a query that would end the URL in the line of a request.
func TestQuery(t *testing.T) {
	r := newReceiver(t, status(http.StatusOK))
	target := r.URL + "/hooks?a=b HTTP/1.0&c=é&d=%0d%0a%&e=+/?"
	must(t, post(t, &delayq.Delivery{Headers: map[string]string{webhook.URLHeader: target}}, webhook.Allow(r.URL+"/hooks")))
	must(t, post(t, &delayq.Delivery{}, webhook.To(target)))
	for _, request := range r.got() {
		if want := "/hooks?a=b%20HTTP/1.0&c=%C3%A9&d=%0d%0a%&e=+/?"; request.RequestURI != want || request.Proto != "HTTP/1.1" {
			t.Errorf("got %s %s; want %s", request.RequestURI, request.Proto, want)
		}
	}
}

func TestInvalid(t *testing.T) {
	for name, opts := range map[string][]webhook.Option{
		"nothing":        nil,
		"nil":            {nil},
		"no scheme":      {webhook.To("example.org/x")},
		"no host":        {webhook.To("http:///x")},
		"other scheme":   {webhook.To("ftp://example.org")},
		"login":          {webhook.To("https://me:secret@example.org")},
		"port":           {webhook.To("https://example.org:65536")},
		"fragment":       {webhook.To("https://example.org/secret#x")},
		"dots":           {webhook.Allow("https://example.org/../x")},
		"query":          {webhook.Allow("https://example.org/?token=secret")},
		"short secret":   {webhook.To("https://example.org"), webhook.Secret("secret")},
		"broken secret":  {webhook.To("https://example.org"), webhook.Secret("whsec_secret!")},
		"short timeout":  {webhook.To("https://example.org"), webhook.Timeout(time.Millisecond)},
		"long timeout":   {webhook.To("https://example.org"), webhook.Timeout(time.Hour)},
		"control in URL": {webhook.To("https://example.org/\n?secret")},
	} {
		if _, err := webhook.New(opts...); !errors.Is(err, delayq.ErrInvalid) || strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestConsumed has messages go through a queue: one succeeds in its second attempt, one is gone.
func TestConsumed(t *testing.T) {
	var tries sync.Map
	r := newReceiver(t, func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("webhook-id")
		if _, again := tries.LoadOrStore(id, true); id == "gone" {
			w.WriteHeader(http.StatusGone)
		} else if !again {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	q, err := delayq.New(ctx, "hooks", delayq.InMemory(), delayq.WithLogger(slog.New(slog.DiscardHandler)))
	must(t, err)
	defer func() { must(t, q.Close()) }()
	for _, id := range []string{"works", "gone"} {
		_, err = q.Push(ctx, []byte(id), delayq.ID(id))
		must(t, err)
	}
	h, err := webhook.New(webhook.To(r.URL))
	must(t, err)
	consuming, end := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- q.Consume(consuming, h, delayq.Retry(delayq.Delays{0})) }()
	for {
		s, err := q.Stats(ctx)
		must(t, err)
		if s.Dead == 1 && s.Scheduled+s.Ready+s.InFlight == 0 {
			break
		}
		time.Sleep(5 * time.Millisecond) // Stats fails at the deadline of ctx
	}
	end()
	must(t, <-done)
	if len(r.got()) != 3 {
		t.Errorf("%d requests; want 3", len(r.got()))
	}
	for l, err := range q.Dead().All(ctx) {
		must(t, err)
		if l.ID != "gone" || !strings.Contains(l.Reason, "410 Gone") {
			t.Errorf("dead letter %s: %s", l.ID, l.Reason)
		}
	}
}
