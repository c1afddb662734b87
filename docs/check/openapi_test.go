package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"

	"github.com/delayq/delayq/memory"
	"github.com/delayq/delayq/server"
)

// An openAPI holds calls of a server against the document that the server shows.
type openAPI struct {
	handler http.Handler
	valid   validator.Validator
	seen    map[string]bool // "METHOD path" of the document, with a success
}

func newOpenAPI(t *testing.T) *openAPI {
	t.Helper()
	doc, err := libopenapi.NewDocument(server.Document())
	if err != nil {
		t.Fatal(err)
	}
	valid, errs := validator.NewValidator(doc)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if ok, errs := valid.ValidateDocument(); !ok {
		for _, e := range errs {
			t.Errorf("the document: %s: %s", e.Message, e.Reason)
		}
	}
	s, err := server.New(memory.New(), server.WithLogger(slog.New(slog.DiscardHandler)), server.MaxRequestBytes(1<<20))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return &openAPI{s, valid, make(map[string]bool)}
}

// call makes a call, and checks the reply, and also the request unless the reply rejects it.
func (o *openAPI) call(t *testing.T, status int, method, path, body string) map[string]any {
	t.Helper()
	request := func() *http.Request {
		r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader(body))
		if method == http.MethodPost {
			r.Header.Set("Content-Type", "application/json")
		}
		return r
	}
	w := httptest.NewRecorder()
	o.handler.ServeHTTP(w, request())
	text := w.Body.Bytes()
	if w.Code != status {
		t.Errorf("%s %s %s: got %d %s, want %d", method, path, body, w.Code, text, status)
	}
	reply := w.Result()
	reply.Body = io.NopCloser(bytes.NewReader(text))
	if ok, errs := o.valid.ValidateHttpResponse(request(), reply); !ok {
		t.Errorf("%s %s: the reply %s is not that of the document:%s", method, path, text, reasons(errs))
	}
	if ok, errs := o.valid.ValidateHttpRequest(request()); ok != (status/100 == 2) && status != http.StatusNotFound && status != http.StatusConflict {
		t.Errorf("%s %s: the reply is %d, and the document allows the request %s: %v%s", method, path, status, body, ok, reasons(errs))
	}
	if status/100 == 2 {
		o.seen[method+" "+strings.Replace(strings.SplitN(path, "?", 2)[0], "/orders/", "/{queue}/", 1)] = true
	}
	var value map[string]any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("%s %s: %s: %v", method, path, text, err)
	}
	return value
}

func reasons[T any](errs []T) (text string) {
	for _, e := range errs {
		text += fmt.Sprintf("\n  %v", e)
	}
	return text
}

// take receives a message and returns its lease.
func (o *openAPI) take(t *testing.T) string {
	t.Helper()
	got := o.call(t, 200, "POST", "/v1/queues/orders/receive", `{"wait": "10s", "lease_for": 60}`)
	return got["messages"].([]any)[0].(map[string]any)["lease"].(string)
}

// TestOpenAPI makes every call of the document, with all fields, and some that fail.
func TestOpenAPI(t *testing.T) {
	o := newOpenAPI(t)
	get := func(path string) { t.Helper(); o.call(t, 200, "GET", path, "") }
	post := func(verb, body string, args ...any) {
		t.Helper()
		o.call(t, 200, "POST", "/v1/queues/orders/"+verb, fmt.Sprintf(body, args...))
	}
	push := func(body string) { t.Helper(); o.call(t, 201, "POST", "/v1/queues/orders/messages", body) }

	push(`{"id": "a", "body": "text", "headers": {"k": "v"}, "headers_base64": {"raw": "/w=="}, "after": "1h", "spread": 1, "limits": {"attempts": 3, "handler_timeout": "1m", "expires_after": "1h", "expires": "2100-01-01T00:00:00Z", "dead_letter_expired": true}}`)
	push(`{"id": "a", "body": {"json": [1]}, "replace": true, "replace_after_in_flight": true, "max_wait": "1h", "due": "2100-01-01T00:00:00Z"}`)
	push(`{"body_base64": "3q2+7w==", "id": "u", "unique_for": "1h", "after": 3600}`)
	post("messages/batch", `{"messages": [{"id": "a"}, {"id": "b", "after": "1h", "body": 17}]}`)
	get("/v1/queues/orders/messages?limit=10")
	post("get", `{"ids": ["a", "nosuch"]}`)
	post("reschedule", `{"messages": [{"id": "a", "after": "2h"}, {"id": "b", "due": "2100-01-01T00:00:00Z"}]}`)
	post("cancel", `{"ids": ["a", "b", "u"]}`)
	get("/v1/queues/orders/stats")
	for i := range 4 {
		push(fmt.Sprintf(`{"id": "now%d", "body": "x"}`, i))
	}
	post("extend", `{"leases": [%q], "lease_for": "2m"}`, o.take(t))
	post("ack", `{"leases": [%q]}`, o.take(t))
	post("release", `{"leases": [%q]}`, o.take(t))
	post("nack", `{"messages": [{"lease": %q, "after": 0, "headers": {"tried": "1"}, "headers_base64": {"raw": "/w=="}}]}`, o.take(t))
	for range 2 {
		post("dead", `{"messages": [{"lease": %q, "reason": "of the test"}]}`, o.take(t))
	}
	get("/v1/queues/orders/dead?limit=10&reason_prefix=of&died_before=2100-01-01T00:00:00Z")
	get("/v1/queues/orders/dead/ids?limit=1")
	post("dead/delete", `{"ids": ["now2"]}`)
	post("dead/redrive", `{"filter": {"reason_prefix": "of", "died_before": "2100-01-01T00:00:00Z", "headers": {"tried": "1"}}}`)
	post("dead/trim", `{"max_age": "1h", "max_count": 10}`)
	post("pause", `{"for": "1m"}`)
	post("resume", `{}`)
	post("receive/end", `{"key": "k"}`)
	get("/v1/store")
	get("/v1/queues")
	post("purge", `{}`)

	o.call(t, 404, "POST", "/v1/queues/orders/cancel", `{"ids": ["nosuch"]}`)
	o.call(t, 400, "POST", "/v1/queues/orders/cancel", `{"ids": []}`)
	o.call(t, 400, "POST", "/v1/queues/orders/cancel", `{"idz": ["a"]}`)
	o.call(t, 400, "POST", "/v1/queues/orders/messages", `{"after": "soon"}`)
	o.call(t, 400, "POST", "/v1/queues/orders/ack", `{}`)
	o.call(t, 400, "POST", "/v1/queues/orders/extend", `{"leases": ["x"]}`)

	var doc struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	if err := json.Unmarshal(server.Document(), &doc); err != nil {
		t.Fatal(err)
	}
	for path, item := range doc.Paths {
		for method := range item {
			if name := strings.ToUpper(method) + " " + path; method != "parameters" && !o.seen[name] {
				t.Errorf("no call of %s succeeded", name)
			}
		}
	}
}
