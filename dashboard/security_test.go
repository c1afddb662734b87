package dashboard_test

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/dashboard"
	"github.com/delayq/delayq/internal/queuetest"
)

const script = `"><script>alert(1)</script><img src=x onerror=alert(2)>{{.}}'`

// Names, ids, headers, bodies and reasons of others are shown as text.
func TestHostileMessages(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		q := queuetest.New(t)
		const mark = "\u202egnp.exe\u2066\u200f"
		name := "../" + script + mark + "\n"
		b := open(t, dashboard.Queues(map[string]delayq.Queue{name: q, "orders": q}), anybody)
		ids := []string{script + mark, "..", ".", "a/../../b", "%2e%2e%2f", "//evil.example", "~YQ", "?x=1#y", "a\\b", strings.Repeat("é", 127)}
		for _, id := range ids {
			push(t, q, id, script+mark, delayq.Header(script+mark, script+mark+"\x00\xff"), delayq.Type(script+mark))
		}
		makeDead(t, q, 1, script+mark+"\n\x1b[2J")
		for _, id := range ids[1:] {
			mustDo(t, q.RescheduleAfter(t.Context(), id, time.Hour))
		}
		at := "/queues/" + nameIn(b.get("/"))
		targets := []string{"/", "/?find=" + url.QueryEscape(script), at, at + "/push", at + "/purge"}
		for _, list := range []string{"/messages", "/dead"} {
			query := url.Values{"type": {script}, "reason": {script}}
			targets = append(targets, at+list, at+list+"?"+query.Encode())
			for _, m := range regexp.MustCompile(`href="([^"]*/messages/[^"]*)"`).FindAllStringSubmatch(b.get(at+list), -1) {
				to := b.resolve(at+list, html.UnescapeString(m[1]))
				targets = append(targets, to, to+"?as=json", to+"?as=hex", to+"?as="+url.QueryEscape(script))
			}
		}
		if want := 4 * len(ids); len(targets) < want {
			t.Fatalf("the lists link to %d pages only, want %d", len(targets), want)
		}
		for _, target := range targets {
			harmless(t, target, b.do("GET", target, nil))
		}
		for _, id := range ids[1:] {
			r := b.do("GET", "/queues/orders/find?id="+url.QueryEscape(id), nil)
			b.post("/queues/orders/act", url.Values{"id": {r.to[strings.LastIndex(r.to, "/")+1:]}, "action": {"cancel"}, "back": {"message"}}, "Cancel: 1 done.")
		}
	})
}

// nameIn returns the segment of the first queue of a page.
func nameIn(page string) string {
	return regexp.MustCompile(`queues/(~[^"/]+)"`).FindStringSubmatch(page)[1]
}

func harmless(t *testing.T, target string, r reply) {
	t.Helper()
	if r.status != http.StatusOK {
		t.Errorf("%s: %d: %s", target, r.status, text(r.body))
	}
	if strings.Contains(r.body, "<script>") || strings.Contains(r.body, "<img") || strings.ContainsAny(r.body, "\u202e\u2066\u200f\x00\x1b") {
		t.Errorf("%s has what a message brought along: %s", target, r.body)
	}
	bare := regexp.MustCompile(`"[^"]*"`).ReplaceAllString(r.body, `""`) // values of attributes are text
	if strings.Contains(bare, " style=") || regexp.MustCompile(`<[^>]* on[a-z]+=`).MatchString(bare) {
		t.Errorf("%s has styles or handlers that the policy forbids", target)
	}
	for key, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
		"X-Frame-Options":         "DENY", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "same-origin",
	} {
		if got := r.head.Get(key); got != want {
			t.Errorf("%s: %s is %q", target, key, got)
		}
	}
}

// Bodies of megabytes make no pages of megabytes.
func TestLargeMessages(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		b, q := openQueue(t)
		for i, body := range []string{strings.Repeat("é", 1<<20), "[" + strings.Repeat("1,", 300<<10) + "1]", strings.Repeat("\x00", 2<<20), strings.Repeat("\u202e", 200<<10)} {
			id := fmt.Sprint("m", i)
			push(t, q, id, body, delayq.Header("h", strings.Repeat("x", 60_000)))
			if page := b.get("/queues/orders/messages/"+id, "The beginning is shown"); len(page) > 500_000 {
				t.Errorf("the page of %s has %d bytes", id, len(page))
			}
			if page := b.get("/queues/orders/messages"); len(page) > 50_000 {
				t.Errorf("the list has %d bytes", len(page))
			}
			r := b.do("GET", "/queues/orders/messages/"+id+"/body", nil)
			if r.body != body || r.head.Get("Content-Disposition") != "attachment; filename=message.bin" || r.head.Get("Content-Type") != "application/octet-stream" {
				t.Errorf("the download of %s has %d bytes and %v", id, len(r.body), r.head)
			}
		}
		makeDead(t, q, 4, strings.Repeat("stack ", 1<<17))
		if page := b.get("/queues/orders/dead"); len(page) > 50_000 {
			t.Errorf("the dead letters have %d bytes", len(page))
		}
		r := b.postOnly("/queues/orders/push", url.Values{"body": {strings.Repeat("x", 4<<20)}})
		b.rejected(r, http.StatusRequestEntityTooLarge, "larger than 4,194,304 bytes")
		r = b.postOnly("/queues/orders/act", url.Values{"id": {strings.Repeat("x", 2<<20)}})
		b.rejected(r, http.StatusRequestEntityTooLarge, "larger than 1,048,576 bytes")
	})
}

// posts are all changes.
var posts = map[string]url.Values{
	"/queues/orders/push":   {"body": {"x"}},
	"/queues/orders/act":    {"action": {"cancel"}, "id": {"s1"}},
	"/queues/orders/jobs":   {"action": {"cancel"}},
	"/queues/orders/pause":  {},
	"/queues/orders/resume": {},
	"/queues/orders/purge":  {"name": {"orders"}},
}

func TestForgedForms(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		b, q := openQueue(t)
		fill(t, q)
		before, err := q.Stats(t.Context())
		mustDo(t, err)
		token := tokenIn.FindStringSubmatch(b.get("/queues/orders/push"))[1]
		other, _ := openQueue(t)
		foreign := tokenIn.FindStringSubmatch(other.get("/queues/orders/push"))[1]
		for target, form := range posts {
			for name, csrf := range map[string]string{"none": "", "another handler's": foreign, "cut": token[:20], "doubled": token + token} {
				forged := url.Values{"csrf": {csrf}}
				for k, v := range form {
					forged[k] = v
				}
				if r := b.do("POST", target, forged); r.status != http.StatusForbidden {
					t.Errorf("POST %s with the token %q: %d", target, name, r.status)
				}
			}
			forged := url.Values{"csrf": {token}}
			for k, v := range form {
				forged[k] = v
			}
			for name, edit := range map[string]func(*http.Request){
				"cross-site":       func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
				"same-site":        func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
				"a foreign origin": func(r *http.Request) { r.Header.Del("Sec-Fetch-Site"); r.Header.Set("Origin", "https://evil.example") },
				"no cookie":        func(r *http.Request) { r.Header.Del("Cookie") },
				"another cookie": func(r *http.Request) {
					r.Header.Set("Cookie", "delayq_dashboard="+strings.Repeat("A", 43))
				},
				"JSON": func(r *http.Request) { r.Header.Set("Content-Type", "application/json") },
			} {
				b.edit = edit
				if r := b.do("POST", target, forged); r.status != http.StatusForbidden {
					t.Errorf("POST %s with %s: %d", target, name, r.status)
				}
				b.edit = nil
			}
			if r := b.do("GET", target+"?"+forged.Encode(), nil); r.to != "" {
				t.Errorf("GET %s goes to %s", target, r.to)
			}
			if r := b.do("PUT", target, forged); r.status != http.StatusMethodNotAllowed {
				t.Errorf("PUT %s: %d", target, r.status)
			}
		}
		if after, err := q.Stats(t.Context()); err != nil || after != before {
			t.Errorf("forged forms changed %+v to %+v, %v", before, after, err)
		}
	})
}

func TestPathTricks(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		b, _ := openQueue(t)
		for _, target := range []string{
			"//evil.example/", "/queues/../queues/orders", "/queues/orders/", "/queues//orders", "/./", "/static/../static/live.js", "/static/", "/static/%2e%2e%2fhandler.go",
			"/static/..%2fhandler.go", "/queues/%2e%2e", "/queues/~", "/queues/~%00", "/queues/or%64ers%00", "/queues/orders/messages/%2e%2e/body", "/queues/orders/messages/~!!", "/%5cevil.example",
			"/queues/orders%2fmessages", "/queues/ORDERS", "/templates/base.html",
		} {
			if r := b.do("GET", target, nil); r.status != http.StatusNotFound || r.head.Get("Location") != "" {
				t.Errorf("GET %s: %d to %q: %s", target, r.status, r.head.Get("Location"), text(r.body))
			}
		}
	})
}

// Without Authorize the dashboard serves this machine alone, and changes nothing.
func TestWithoutAuthorize(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		q := queuetest.New(t)
		fill(t, q)
		b := open(t, dashboard.Queues(map[string]delayq.Queue{"orders": q}))
		page := b.get("/queues/orders/dead", "Read-only: the dashboard is read-only and serves this machine alone, since it was made without Authorize")
		if strings.Contains(page, `method="post"`) {
			t.Error("a read-only page offers changes")
		}
		nothingChanges(t, b, q)
		for name, edit := range map[string]func(*http.Request){
			"another machine": func(r *http.Request) { r.RemoteAddr = "192.0.2.7:4711" },
			"no address":      func(r *http.Request) { r.RemoteAddr = "@" },
			"a proxy":         func(r *http.Request) { r.Header.Set("X-Forwarded-For", "127.0.0.1") },
			"another proxy":   func(r *http.Request) { r.Header.Set("Forwarded", "for=127.0.0.1") },
			"an empty header": func(r *http.Request) { r.Header["X-Forwarded-For"] = []string{""} },
			"a proxy's host":  func(r *http.Request) { r.Header.Set("X-Forwarded-Host", "queues.example") },
			"nginx":           func(r *http.Request) { r.Proto, r.ProtoMinor = "HTTP/1.0", 0 },
			"another name":    func(r *http.Request) { r.Host = "rebound.example:8490" },
		} {
			b.edit = edit
			for _, target := range []string{"/", "/queues/orders", "/queues/orders/messages/d1/body"} {
				if r := b.do("GET", target, nil); r.status != http.StatusForbidden || strings.Contains(r.body, "orders") {
					t.Errorf("%s gets %s: %d %s", name, target, r.status, text(r.body))
				}
			}
			if r := b.do("GET", "/figures?q=orders", nil); r.status != http.StatusNotFound {
				t.Errorf("%s gets the figures %s", name, r.body)
			}
			if r := b.do("GET", "/events?q=orders", nil); r.status != http.StatusNotFound {
				t.Errorf("%s gets events: %d", name, r.status)
			}
		}
		for _, host := range []string{"localhost", "127.0.0.1:80", "[::1]:80", "LOCALHOST:1"} {
			b.edit = func(r *http.Request) { r.Host, r.RemoteAddr = host, "[::1]:1" }
			b.get("/")
		}
	})
}

// nothingChanges tries all changes with tokens that are as good as can be had.
func nothingChanges(t *testing.T, b *browser, q delayq.Queue) {
	t.Helper()
	before, err := q.Stats(t.Context())
	mustDo(t, err)
	for target, form := range posts {
		if r := b.postOnly(target, form); r.status != http.StatusForbidden {
			t.Errorf("POST %s: %d %s", target, r.status, text(r.body))
		}
	}
	if after, err := q.Stats(t.Context()); err != nil || after != before {
		t.Errorf("%+v became %+v, %v", before, after, err)
	}
}

func TestReadOnly(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		b, q := openQueue(t, dashboard.ReadOnly())
		fill(t, q)
		if page := b.get("/queues/orders", "Read-only: the dashboard is read-only."); strings.Contains(page, `method="post"`) {
			t.Error("a read-only page offers changes")
		}
		nothingChanges(t, b, q)
	})
}

func TestAuthorizeByActionAndQueue(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		q, secret := queuetest.New(t), queuetest.New(t)
		fill(t, q)
		fill(t, secret)
		allowed := map[dashboard.Action]bool{dashboard.View: true, dashboard.Cancel: true}
		notForAnn := errors.New("not for ann\u202e")
		var events []dashboard.Event
		b := open(t, dashboard.Queues(map[string]delayq.Queue{"orders": q, "secret": secret}),
			dashboard.Audit(func(e dashboard.Event) { events = append(events, e) }),
			dashboard.Authorize(func(r *http.Request, a dashboard.Action, queue string) error {
				if user, _, _ := r.BasicAuth(); user != "ann" {
					return errors.New("log in first")
				}
				if queue == "secret" || !allowed[a] {
					return notForAnn
				}
				return nil
			}))
		b.rejected(b.do("GET", "/", nil), http.StatusForbidden, "log in first")
		b.edit = func(r *http.Request) { r.SetBasicAuth("ann", "") }
		if page := b.get("/", "orders"); strings.Contains(page, "secret") {
			t.Error("the page of all queues shows a queue that the user may not see")
		}
		for _, target := range []string{"/queues/secret", "/queues/secret/messages", "/queues/secret/dead", "/queues/secret/messages/d1", "/queues/secret/messages/d1/body", "/queues/secret/push"} {
			b.rejected(b.do("GET", target, nil), http.StatusForbidden, `not for ann\u202e`)
		}
		if r := b.do("GET", "/figures?q=secret&q=orders", nil); strings.Contains(r.body, "secret") || !strings.Contains(r.body, "orders") {
			t.Errorf("the figures are %s", r.body)
		}
		page := b.get("/queues/orders/messages", `Reschedule: you may not do this: not for ann\u202e.`)
		if !regexp.MustCompile(`value="reschedule" disabled`).MatchString(page) || regexp.MustCompile(`value="cancel"[^>]* disabled`).MatchString(page) {
			t.Error("the wrong buttons are offered")
		}
		for target, form := range posts {
			if r := b.postOnly(target, form); target != "/queues/orders/act" && target != "/queues/orders/jobs" {
				b.rejected(r, http.StatusForbidden, "not for ann")
			}
			b.rejected(b.postOnly(strings.Replace(target, "orders", "secret", 1), form), http.StatusForbidden, "not for ann")
		}
		var tried []string
		for _, e := range events {
			user, _, _ := e.Request.BasicAuth()
			tried = append(tried, fmt.Sprintf("%s %s %s %v %d %v", user, e.Action, e.Queue, e.IDs, e.Done, errors.Is(e.Err, notForAnn)))
		}
		slices.Sort(tried)
		if want := []string{
			"ann cancel orders [s1] 1 false", "ann pause orders [] 0 true", "ann purge orders [] 0 true",
			"ann push orders [] 0 true", "ann resume orders [] 0 true", "ann view secret [] 0 true", "ann view secret [] 0 true",
			"ann view secret [] 0 true", "ann view secret [] 0 true", "ann view secret [] 0 true", "ann view secret [] 0 true",
		}; !slices.Equal(tried, want) {
			t.Errorf("the audit has %q, want %q", tried, want)
		}
	})
}

// What is redacted is neither shown nor found.
func TestRedact(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		b, q := openQueue(t, dashboard.Redact(func(queue string, m *delayq.MessageInfo) {
			m.Body = bytes.ReplaceAll(m.Body, []byte("4711"), []byte("****"))
			m.Reason = strings.ReplaceAll(m.Reason, "4711", "****")
			delete(m.Headers, "token")
			m.ID, m.State = "other", 0 // which has no effect
		}))
		for _, id := range []string{"dead", "waiting"} {
			push(t, q, id, `{"pin":"4711"}`, delayq.Header("token", "4711"), delayq.Header("lang", "en"))
		}
		makeDead(t, q, 1, "pin 4711 is wrong")
		for _, target := range []string{
			"/queues/orders/messages", "/queues/orders/dead", "/queues/orders/messages/dead", "/queues/orders/messages/waiting?as=hex", "/queues/orders/messages/waiting/body",
		} {
			if page := b.get(target); strings.Contains(page, "4711") || strings.Contains(page, "token") {
				t.Errorf("%s shows %s", target, text(page))
			}
		}
		b.get("/queues/orders/dead?reason=4711", "0 of 1 messages looked at match")
		begin(t, b, url.Values{"action": {"delete"}, "reason": {"4711"}}, "0 messages match")
		if m := wantState(t, q, "dead", delayq.StateDead); m.Headers["token"] != "4711" {
			t.Errorf("the message itself has changed: %+v", m)
		}
	})
}

// Neither the log nor a URL has a body.
func TestBodiesStayOutOfLogAndURLs(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		const secret = "s3cr3t"
		var log bytes.Buffer
		b, _ := openQueue(t, dashboard.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
		for _, form := range []url.Values{{"body": {secret}, "id": {"a"}}, {"body": {secret}, "id": {"a"}}, {"body": {secret}, "after": {"x"}}, {"body": {secret}, "headers": {"k: " + secret}}} {
			if r := b.postOnly("/queues/orders/push", form); strings.Contains(r.to, secret) {
				t.Errorf("the body is in the URL %s", r.to)
			}
		}
		b.post("/queues/orders/act", url.Values{"id": {"a"}, "action": {"cancel"}})
		if got := log.String(); strings.Contains(got, secret) || !strings.Contains(got, "action=push queue=orders messages=1 done=1 from=127.0.0.1:4711 id=a") || !strings.Contains(got, "action=cancel") {
			t.Errorf("the log is %s", got)
		}
	})
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	s := dashboard.Queues(nil)
	for name, opt := range map[string]dashboard.Option{
		"nil": nil, "Authorize": dashboard.Authorize(nil), "Redact": dashboard.Redact(nil), "Audit": dashboard.Audit(nil), "WithLogger": dashboard.WithLogger(nil),
	} {
		if _, err := dashboard.New(s, opt); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := dashboard.New(nil); err == nil {
		t.Error("there is no source, and no error")
	}
}

func TestClosedHandler(t *testing.T) {
	t.Parallel()
	h, err := dashboard.New(dashboard.Queues(nil), anybody)
	mustDo(t, err)
	mustDo(t, h.Close())
	mustDo(t, h.Close())
	b := &browser{t: t, handler: h, cookies: map[string]string{}}
	b.rejected(b.do("GET", "/", nil), http.StatusServiceUnavailable, "closed")
}
