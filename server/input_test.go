package server_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/delayq/delayq/internal/wire"
	"github.com/delayq/delayq/server"
)

var waitingLine = regexp.MustCompile(`(?m)^delayq_server_waiting_receives (\d+)$`)

// waiting returns how many receives wait.
func waiting(t *testing.T, f *fixture) string {
	t.Helper()
	m := waitingLine.FindSubmatch(f.call(t, http.MethodGet, "/metrics", "").body)
	if m == nil {
		t.Fatal("no metric of receives that wait")
	}
	return string(m[1])
}

// Bad input gets a problem that names the field, and changes nothing.
func TestBadInput(t *testing.T) {
	t.Parallel()
	f := start(t, server.MaxRequestBytes(2000), server.MaxBatch(2))
	for _, tt := range []struct {
		verb, body string
		status     int
		code       string
		says       string
	}{
		{"messages", `{`, 400, wire.Invalid, "JSON"},
		{"messages", `{} {}`, 400, wire.Invalid, "more than one"},
		{"messages", `{}}`, 400, wire.Invalid, "more than one"},
		{"messages", `{}]`, 400, wire.Invalid, "more than one"},
		{"messages", `[]`, 400, wire.Invalid, "JSON"},
		{"messages", `{"bodi": 1}`, 400, wire.Invalid, "bodi"},
		{"messages", "{\"body\": \"\xff\"}", 400, wire.Invalid, "UTF-8"},
		{"messages", `{"body": "\ud800"}`, 400, wire.Invalid, "surrogate"},
		{"messages", `{"body": "x", "body_base64": "eA=="}`, 400, wire.Invalid, "one of body and body_base64"},
		{"messages", `{"body_base64": "!"}`, 400, wire.Invalid, "base64"},
		{"messages", `{"headers": {"a": "b"}, "headers_base64": {"a": "eA=="}}`, 400, wire.Invalid, "header a"},
		{"messages", `{"headers": {"delayq-x": "b"}}`, 400, wire.Invalid, "delayq-"},
		{"messages", `{"after": "soon"}`, 400, wire.Invalid, "30m"},
		{"messages", `{"after": -1}`, 400, wire.Invalid, "invalid after"},
		{"messages", `{"after": 1, "due": "2100-01-01T00:00:00Z"}`, 400, wire.Invalid, "one of the two"},
		{"messages", `{"after": "` + strings.Repeat("9", 1000) + `"}`, 400, wire.Invalid, "(1002 bytes)"},
		{"messages", `{"due": "0001-01-01T00:00:00Z"}`, 400, wire.Invalid, "invalid due"},
		{"messages", `{"due": "tomorrow"}`, 400, wire.Invalid, "tomorrow"},
		{"messages", `{"id": "a\nb"}`, 400, wire.Invalid, "id"},
		{"messages", `{"unique_for": "1h"}`, 400, wire.Invalid, "invalid unique_for"},
		{"messages", `{"id": "a", "replace": true, "max_wait": "1ns"}`, 400, wire.Invalid, "invalid max_wait"},
		{"messages", `{"limits": {"dead_letter_expired": true}}`, 400, wire.Invalid, "invalid limits.dead_letter_expired"},
		{"messages", `{"limits": {"handler_timeout": "25h"}}`, 400, wire.Invalid, "invalid limits.handler_timeout"},
		{"messages", `{"body": "` + strings.Repeat("x", 2000) + `"}`, 413, wire.TooLarge, "2000"},
		{"messages/batch", `{"messages": [{}, {}, {}]}`, 400, wire.Invalid, "1 to 2"},
		{"messages/batch", `{"messages": []}`, 400, wire.Invalid, "1 to 2"},
		{"messages/batch", `{"messages": [{"id": "a"}, {"after": -1}]}`, 400, wire.Invalid, "message 1 of the batch"},
		{"receive", `{"limit": 3}`, 400, wire.Invalid, "1 to 2"},
		{"receive", `{"lease_for": "25h"}`, 400, wire.Invalid, "lease_for"},
		{"receive", `{"wait": -1}`, 400, wire.Invalid, "wait"},
		{"ack", `{"leases": ["x"]}`, 400, wire.Invalid, "lease"},
		{"ack", `{"leases": [""]}`, 400, wire.Invalid, "lease"},
		{"ack", `{"leases": ["AQAAAAAAAAACAAAAAAAAAAT_"]}`, 400, wire.Invalid, "lease"},                 // not UTF-8
		{"dead", `{"messages": [{"lease": "AQAAAAAAAAACAAAAAAAAAARhAA"}]}`, 400, wire.Invalid, "lease"}, // a NUL
		{"nack", `{"messages": [{"lease": "AQAAAAAAAAACAAAAAAAAAAR4", "untouched": true, "after": 1}]}`, 400, wire.Invalid, "untouched"},
		{"ack", `{"leases": ["AQAAAAAAAAACAAAAAAAAAAR4"]}`, 409, wire.LeaseLost, "lease lost"},
		{"cancel", `{"ids": ["nosuch"]}`, 404, wire.NotFound, "no such message"},
		{"dead/redrive", `{}`, 400, wire.Invalid, "filter"},
		{"dead/trim", `{}`, 400, wire.Invalid, "max_age"},
		{"pause", `{"for": 1, "until": "2100-01-01T00:00:00Z"}`, 400, wire.Invalid, "one of them"},
		{"pause", `{"until": "0001-01-01T00:00:00Z"}`, 400, wire.Invalid, "invalid until"},
		{"pause", `{"for": 0}`, 400, wire.Invalid, "invalid for"},
		{"pause", `{"for": "-1s"}`, 400, wire.Invalid, "invalid for"},
		{"nosuch", `{}`, 404, wire.NoSuchPath, "openapi.json"},
	} {
		p := f.post(t, tt.verb, tt.body).want(t, tt.status, tt.code)
		if !strings.Contains(fmt.Sprint(p), tt.says) || p.Type != wire.TypePrefix+p.Code || p.Title == "" || p.Status != tt.status {
			t.Errorf("%s %s: got %+v, without %q", tt.verb, tt.body, p, tt.says)
		}
	}
	for _, name := range []string{"a%2Fb", "a%00", "%FF", strings.Repeat("x", 201), "{a}"} {
		f.call(t, http.MethodPost, "/v1/queues/"+name+"/messages", "{}").want(t, http.StatusBadRequest, wire.Invalid)
	}
	r := f.call(t, http.MethodPut, orders+"messages", "")
	r.want(t, http.StatusMethodNotAllowed, wire.BadMethod)
	if r.header.Get("Allow") != "GET, POST" {
		t.Errorf("Allow: %s", r.header.Get("Allow"))
	}
	if s := f.stats(t); s.Ready+s.Scheduled != 0 || s.Paused {
		t.Errorf("stored: %+v", s)
	}
}

// A batch of millions is rejected before it takes memory. No test runs beside this one: it measures
// the whole process.
func TestHugeBatch(t *testing.T) {
	f := start(t)
	f.postHuge(t, "messages/batch", `{"messages": [{}`, 10_000_000)
	for verb, begin := range map[string]string{
		"nack": `{"messages": [{}`, "dead": `{"messages": [{}`, "reschedule": `{"messages": [{}`,
		"cancel": `{"ids": [""`, "dead/delete": `{"ids": [""`,
		"ack": `{"leases": [""`, "extend": `{"lease_for": 1, "leases": [""`,
	} {
		f.postHuge(t, verb, begin, 1_000_000)
	}
}

// postHuge posts a list of so many elements. begin ends with the first one, of two bytes.
func (f *fixture) postHuge(t *testing.T, verb, begin string, elements int) {
	t.Helper()
	body := begin + strings.Repeat(","+begin[len(begin)-2:], elements-1) + "]}"
	r := httptest.NewRequest(http.MethodPost, f.URL+orders+verb, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f.server.ServeHTTP(w, r)
	runtime.ReadMemStats(&after)
	got := reply{w.Code, w.Header().Get("Content-Type"), w.Header(), w.Body.Bytes()}
	p := got.want(t, http.StatusBadRequest, wire.Invalid)
	want := fmt.Sprintf("invalid number of messages %d: allowed is 1 to 1000", elements)
	if p.Detail != want {
		t.Errorf("%s: got %q, want %q", verb, p.Detail, want)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > uint64(10*len(body)) {
		t.Errorf("%s: %d bytes were allocated for a body of %d", verb, used, len(body))
	}
}

// A query that cannot be read, or that a call does not know, is no call without it.
func TestBadQuery(t *testing.T) {
	t.Parallel()
	f := start(t)
	for call, says := range map[string]string{
		"GET dead?reason-prefix=no":                   "invalid parameter",
		"GET dead?reason_prefix=n;o":                  "semicolon",
		"GET dead?reason_prefix=%zz":                  "%zz",
		"GET dead?reason_prefix=a&reason_prefix=b":    "invalid reason_prefix",
		"GET dead/ids?reason_prefix=no":               "invalid parameter",
		"GET messages?limit=5&offset=5":               "invalid parameter",
		"GET stats?limit=5":                           "invalid parameter",
		"POST dead/delete?reason_prefix=no":           "invalid parameter",
		"POST messages?" + strings.Repeat("x", 1<<10): "invalid parameter",
	} {
		method, path, _ := strings.Cut(call, " ")
		p := f.call(t, method, orders+path, "").want(t, http.StatusBadRequest, wire.Invalid)
		if !strings.Contains(p.Detail, says) || len(p.Detail) > 500 {
			t.Errorf("%s: got %q, want %q in it", call, p.Detail, says)
		}
	}
	f.call(t, http.MethodGet, "/v1/store?all=1", "").want(t, http.StatusBadRequest, wire.Invalid)
	good := orders + "dead?reason_prefix=n%3Bo&limit=5&cursor="
	f.call(t, http.MethodGet, good, "").want(t, http.StatusOK, "")
}

// Commas in strings, and those of lists within elements, are no elements of a list.
func TestListsWithinABatch(t *testing.T) {
	t.Parallel()
	f := start(t, server.MaxBatch(2))
	f.post(t, "messages", `{"body": [1, 2, 3]}`).want(t, http.StatusCreated, "")
	for verb, body := range map[string]string{
		"messages/batch": `{"messages": [{"body": [1, 2, 3]}, {"body": "\\\",,,[\"", "headers": {"a": ""}}]}`,
		"dead/delete":    `{"filter": {"died_before": "2100-01-01T00:00:00Z", "reason_prefix": "", "headers": {}}}`,
	} {
		f.post(t, verb, body).want(t, http.StatusOK, "")
	}
}

// Names of dots are names of queues, and no steps in a path.
func TestNamesOfDots(t *testing.T) {
	t.Parallel()
	f := start(t)
	for _, name := range []string{"%2E", "%2E%2E", "%2e%2e", "a.b:c-d_e"} {
		f.call(t, http.MethodPost, "/v1/queues/"+name+"/messages", "{}").want(t, http.StatusCreated, "")
	}
	var got wire.Queues
	f.call(t, http.MethodGet, "/v1/queues", "").into(t, &got)
	if fmt.Sprint(got.Queues) != "[. .. a.b:c-d_e]" {
		t.Errorf("got %q", got.Queues)
	}
}

// Bytes of all kinds come back as they were.
func TestContent(t *testing.T) {
	t.Parallel()
	f := start(t)
	for in, out := range map[string]string{
		`"body": "tëxt <&> \u0000\ud83d\ude00"`: "tëxt <&> \x00😀",
		`"body": {"b": 1,  "a": [true]}`:        `{"b": 1,  "a": [true]}`,
		`"body": 17`:                            "17",
		`"body": ""`:                            "",
		`"body": null`:                          "",
		`"body_base64": "/wD+"`:                 "\xff\x00\xfe",
		`"body_base64": "eA=="`:                 "x",
	} {
		f.post(t, "messages", `{`+in+`}`).want(t, http.StatusCreated, "")
		d := f.receive(t)[0]
		got, err := d.Read()
		if err != nil || string(got.Body) != out {
			t.Errorf("%s: got %q, %v; want %q", in, got.Body, err, out)
		}
		f.post(t, "ack", `{"leases": ["`+d.Lease+`"]}`).want(t, http.StatusOK, "")
	}
}

// Expired messages are not handed out, unless the client looks at limits itself.
func TestExpired(t *testing.T) {
	t.Parallel()
	f := start(t)
	for _, id := range []string{"drop", "dead"} {
		limits := `{"expires": "2000-01-01T00:00:00Z", "dead_letter_expired": ` + fmt.Sprint(id == "dead") + `}`
		f.post(t, "messages", `{"id": "`+id+`", "limits": `+limits+`}`).want(t, http.StatusCreated, "")
	}
	r := f.post(t, "receive", `{"limit": 10, "keep_expired": true, "lease_for": "1h", "wait": "10s"}`)
	if n := bytes.Count(r.body, []byte(`"expires":"2000-01-01T00:00:00Z"`)); n != 2 {
		t.Errorf("got %s", r.body)
	}
	var got wire.Received
	r.into(t, &got)
	f.post(t, "release", `{"leases": ["`+got.Messages[0].Lease+`", "`+got.Messages[1].Lease+`"]}`).want(t, http.StatusOK, "")
	if ds := f.receive(t); len(ds) != 0 {
		t.Errorf("got %+v", ds)
	}
	r = f.call(t, http.MethodGet, orders+"dead", "")
	if s := f.stats(t); s.Dead != 1 || s.Ready+s.InFlight != 0 || !bytes.Contains(r.body, []byte("message expired before")) {
		t.Errorf("got %+v, %s", s, r.body)
	}
}

// A body that never ends, or that stalls, is cut off.
func TestEndlessBody(t *testing.T) {
	t.Parallel()
	f := start(t, server.MaxRequestBytes(1<<16))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.URL+orders+"messages", io.LimitReader(zeros{}, 1<<40))
	must(t, err)
	r.Header.Set("Content-Type", "application/json")
	w, err := f.client.Do(r)
	if err == nil { // the connection may break first
		if w.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("got %d", w.StatusCode)
		}
		_ = w.Body.Close()
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
