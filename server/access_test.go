package server_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/delayq/delayq/internal/wire"
	"github.com/delayq/delayq/server"
)

// rightOf says which right each call needs.
var rightOf = map[string]string{
	"POST messages": "push", "POST messages/batch": "push", "POST cancel": "push", "POST reschedule": "push",
	"POST receive": "consume", "POST receive/end": "consume", "POST ack": "consume", "POST nack": "consume", "POST release": "consume",
	"POST extend": "consume", "POST dead": "consume",
	"GET messages": "read", "POST get": "read", "GET stats": "read", "GET dead": "read", "GET dead/ids": "read",
	"POST dead/redrive": "admin", "POST dead/delete": "admin", "POST dead/trim": "admin", "POST purge": "admin", "POST pause": "admin", "POST resume": "admin",
}

// Each call needs its right, on the queue of its path. Admin has all.
func TestRights(t *testing.T) {
	t.Parallel()
	tokens := make(map[string]string)
	var file strings.Builder
	for _, right := range []string{"push", "consume", "read", "admin"} {
		token, line, err := server.NewToken(right, right+":orders", right+":mail.*")
		must(t, err)
		tokens[right] = token
		file.WriteString("# of " + right + "\n" + line + "\n\n")
	}
	set, err := server.ReadTokens(strings.NewReader(file.String()))
	must(t, err)
	f := start(t, server.Tokens(set))
	for call, needed := range rightOf {
		method, verb, _ := strings.Cut(call, " ")
		for right, token := range tokens {
			f.token = token
			for queue, granted := range map[string]bool{"orders": true, "mail.a": true, "orders2": false, "mail": false} {
				r := f.call(t, method, "/v1/queues/"+queue+"/"+verb, "")
				allowed := granted && (right == needed || right == "admin")
				if forbidden := r.status == http.StatusForbidden; forbidden == allowed {
					t.Errorf("%s on %s with the right %s: %d %s", call, queue, right, r.status, r.body)
				}
			}
		}
		for _, token := range []string{"", "dq_unknown"} {
			f.token = token
			r := f.call(t, method, orders+verb, "")
			r.want(t, http.StatusUnauthorized, wire.Unauthorized)
			if r.header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s: no WWW-Authenticate", call)
			}
		}
	}
}

// Tokens see the queues on which they have a right. Metrics need the right to read all.
func TestListShowsNoOtherQueues(t *testing.T) {
	t.Parallel()
	mail, line1, err := server.NewToken("mail", "push:mail")
	must(t, err)
	all, line2, err := server.NewToken("all", "read:*", "push:*")
	must(t, err)
	set, err := server.ReadTokens(strings.NewReader(line1 + "\n" + line2))
	must(t, err)
	f := start(t, server.Tokens(set))
	f.token = all
	f.push(t)
	f.call(t, http.MethodPost, "/v1/queues/mail/messages", `{}`).want(t, http.StatusCreated, "")
	for token, want := range map[string][]string{mail: {"mail"}, all: {"mail", "orders"}} {
		f.token = token
		var got wire.Queues
		f.call(t, http.MethodGet, "/v1/queues", "").into(t, &got)
		if !slices.Equal(got.Queues, want) {
			t.Errorf("got %q, want %q", got.Queues, want)
		}
	}
	f.token = all
	if r := f.call(t, http.MethodGet, "/metrics", ""); r.status != http.StatusOK || !strings.Contains(string(r.body), `delayq_server_queue_messages{queue="mail",state="ready"} 1`) {
		t.Errorf("got %d %s", r.status, r.body)
	}
	f.token = mail
	f.call(t, http.MethodGet, "/metrics", "").want(t, http.StatusForbidden, wire.Forbidden)
	f.token = ""
	for _, path := range []string{"/healthz", "/readyz", "/openapi.json"} {
		f.call(t, http.MethodGet, path, "").want(t, http.StatusOK, "")
	}
}

// A file that cannot be understood grants nothing.
func TestBadTokens(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256([]byte("x"))
	good := hex.EncodeToString(sum[:])
	for _, file := range []string{
		"", "# nothing\n", "a", "a " + good, "a " + good[1:] + " push:q", "a " + good + "00 push:q", "a zz" + good[2:] + " push:q",
		"a " + good + " push", "a " + good + " write:q", "a " + good + " push:", "a " + good + " push:a*b", "a " + good + " push:q\nb " + good + " read:q",
	} {
		if _, err := server.ReadTokens(strings.NewReader(file)); err == nil {
			t.Errorf("%q is read", file)
		}
	}
}

// A web page cannot use a server of this machine: not from its own site, and not under its own name.
func TestForeignPages(t *testing.T) {
	t.Parallel()
	f := start(t)
	for _, headers := range [][]string{
		{"Origin", "https://evil.example"}, {"Sec-Fetch-Site", "cross-site"}, {"Host", "evil.example"}, {"Host", "evil.example:8090"},
	} {
		f.post(t, "messages", `{"id": "foreign"}`, headers...).want(t, http.StatusForbidden, wire.ForeignOrigin)
	}
	f.post(t, "messages", `{"id": "plain"}`, "Content-Type", "text/plain").want(t, http.StatusUnsupportedMediaType, wire.BadMediaType)
	f.post(t, "messages", `{"id": "form"}`, "Content-Type", "application/x-www-form-urlencoded").want(t, http.StatusUnsupportedMediaType, wire.BadMediaType)
	if s := f.stats(t); s.Ready != 0 {
		t.Errorf("%d messages were stored", s.Ready)
	}
	for _, host := range []string{"localhost", "localhost:1", "[::1]:1", "127.0.0.1", "192.168.0.9:8090"} {
		f.post(t, "messages", `{}`, "Host", host).want(t, http.StatusCreated, "")
	}
	open := start(t, server.AnyHost())
	open.post(t, "messages", `{}`, "Host", "queues.internal").want(t, http.StatusCreated, "")
}
