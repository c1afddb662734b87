package dashboard_test

import (
	"errors"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/dashboard"
	"github.com/delayq/delayq/internal/queuetest"
	"github.com/delayq/delayq/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// anybody allows everything.
var anybody = dashboard.Authorize(func(*http.Request, dashboard.Action, string) error { return nil })

// browser asks a handler for pages, keeps its cookies and fills in the tokens of its forms.
type browser struct {
	t       *testing.T
	handler http.Handler
	prefix  string
	cookies map[string]string
	edit    func(*http.Request)
}

// open returns a browser on a dashboard that is closed with the test.
func open(t *testing.T, s dashboard.Source, opts ...dashboard.Option) *browser {
	t.Helper()
	h, err := dashboard.New(s, append([]dashboard.Option{dashboard.WithLogger(queuetest.Silent)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return &browser{t: t, handler: h, cookies: make(map[string]string)}
}

// openQueue is open with one queue "orders" on memory, and everything allowed.
func openQueue(t *testing.T, opts ...dashboard.Option) (*browser, delayq.Queue) {
	t.Helper()
	q := queuetest.New(t)
	s := dashboard.Queues(map[string]delayq.Queue{"orders": q})
	return open(t, s, append([]dashboard.Option{anybody}, opts...)...), q
}

// reply is a page.
type reply struct {
	status int
	head   http.Header
	body   string
	to     string // the path of a redirect, with its query
}

func (b *browser) do(method, target string, form url.Values) reply {
	b.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r := httptest.NewRequestWithContext(b.t.Context(), method, b.prefix+target, body)
	r.RemoteAddr, r.Host = "127.0.0.1:4711", "localhost:8490"
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for name, value := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	if b.edit != nil {
		b.edit(r)
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	res := w.Result()
	defer func() { _ = res.Body.Close() }()
	for _, c := range res.Cookies() {
		b.cookies[c.Name] = c.Value
	}
	got := reply{status: res.StatusCode, head: res.Header, body: w.Body.String()}
	if to := res.Header.Get("Location"); to != "" {
		got.to = b.resolve(target, to)
	}
	return got
}

// resolve follows a relative reference as browsers do, and takes the prefix away.
func (b *browser) resolve(from, to string) string {
	b.t.Helper()
	at, err := url.Parse("http://localhost" + b.prefix + from)
	if err != nil {
		b.t.Fatal(err)
	}
	u, err := at.Parse(to)
	if err != nil || u.Host != "localhost" || !strings.HasPrefix(u.Path, b.prefix+"/") {
		b.t.Fatalf("%s has a link to %q, outside the dashboard: %v", from, to, err)
	}
	return strings.TrimPrefix(u.RequestURI(), b.prefix)
}

// get returns a page that must be there.
func (b *browser) get(target string, wants ...string) string {
	b.t.Helper()
	r := b.do("GET", target, nil)
	if r.status != http.StatusOK {
		b.t.Fatalf("GET %s: %d: %s", target, r.status, text(r.body))
	}
	return wantText(b.t, target, r.body, wants...)
}

func wantText(t *testing.T, target, body string, wants ...string) string {
	t.Helper()
	page := text(body)
	for _, want := range wants {
		if !strings.Contains(page, want) {
			t.Errorf("%s has no %q: %s", target, want, page)
		}
	}
	return body
}

var (
	tokenIn = regexp.MustCompile(`name="csrf" value="([^"]+)"`)
	tagIn   = regexp.MustCompile(`<[^>]*>`)
	spaces  = regexp.MustCompile(`\s+`)
)

// text is what a page shows.
func text(page string) string {
	return strings.TrimSpace(spaces.ReplaceAllString(html.UnescapeString(tagIn.ReplaceAllString(page, " ")), " "))
}

// post sends a form with a token, and follows the redirect.
func (b *browser) post(target string, form url.Values, wants ...string) reply {
	b.t.Helper()
	r := b.postOnly(target, form)
	if r.to == "" {
		b.t.Fatalf("POST %s: %d: %s", target, r.status, text(r.body))
	}
	if len(wants) > 0 {
		b.get(r.to, wants...)
	}
	return r
}

func (b *browser) postOnly(target string, form url.Values) reply {
	b.t.Helper()
	form = maps.Clone(form)
	if form == nil {
		form = url.Values{}
	}
	if token := tokenIn.FindStringSubmatch(b.do("GET", "/queues/orders/push", nil).body); token != nil {
		form.Set("csrf", token[1])
	}
	return b.do("POST", target, form)
}

// rejected wants a status and a text.
func (b *browser) rejected(r reply, status int, want string) {
	b.t.Helper()
	if r.status != status || !strings.Contains(text(r.body), want) {
		b.t.Errorf("got %d %s; want %d with %q", r.status, text(r.body), status, want)
	}
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func push(t *testing.T, q delayq.Queue, id, body string, opts ...delayq.PushOption) {
	t.Helper()
	if id != "" {
		opts = append(opts, delayq.ID(id))
	}
	_, err := q.Push(t.Context(), []byte(body), opts...)
	mustDo(t, err)
}

// makeDead makes the ready messages dead letters.
func makeDead(t *testing.T, q delayq.Queue, n int, reason string) {
	t.Helper()
	for range n {
		d, err := q.Receive(t.Context())
		mustDo(t, err)
		mustDo(t, d.DeadLetter(t.Context(), reason))
	}
}

func wantState(t *testing.T, q delayq.Queue, id string, want delayq.State) delayq.MessageInfo {
	t.Helper()
	m, err := q.Get(t.Context(), id)
	if want == 0 {
		if !errors.Is(err, delayq.ErrNotFound) {
			t.Errorf("message %q: %v, %v; want none", id, m.State, err)
		}
		return m
	}
	if err != nil || m.State != want {
		t.Errorf("message %q: %v, %v; want %v", id, m.State, err, want)
	}
	return m
}

// lacking is memory without some features.
type lacking struct {
	*memory.Backend
	features []delayq.Feature
}

func (l lacking) Traits() backend.Traits {
	traits := l.Backend.Traits()
	traits.Lacks = traits.Lacks.With(l.features...)
	return traits
}
