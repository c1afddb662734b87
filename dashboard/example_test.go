package dashboard_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/dashboard"
	"github.com/delayq/delayq/memory"
)

// The dashboard in your own server. The user of a request comes from your own login.
func Example() {
	b := memory.New()
	defer b.Close()
	userOf := func(r *http.Request) string { return r.Header.Get("X-User") }

	pages, err := dashboard.New(dashboard.Backend(b, []string{"orders"}),
		dashboard.Authorize(func(r *http.Request, action dashboard.Action, queue string) error {
			switch {
			case userOf(r) == "":
				return errors.New("log in first")
			case action == dashboard.View || userOf(r) == "admin":
				return nil
			}
			return errors.New("only admin changes queues")
		}),
		dashboard.Redact(func(queue string, m *delayq.MessageInfo) {
			delete(m.Headers, "token")
		}),
		dashboard.Audit(func(e dashboard.Event) {
			slog.Info("queue changed", "user", userOf(e.Request), "action", e.Action, "queue", e.Queue, "done", e.Done)
		}))
	if err != nil {
		panic(err)
	}
	defer pages.Close()
	mux := http.NewServeMux()
	mux.Handle("/delayq/", http.StripPrefix("/delayq", pages))

	server := httptest.NewServer(mux)
	defer server.Close()
	for _, user := range []string{"", "ann"} {
		r, _ := http.NewRequest(http.MethodGet, server.URL+"/delayq/", nil)
		r.Header.Set("X-User", user)
		res, err := server.Client().Do(r)
		if err != nil {
			panic(err)
		}
		res.Body.Close()
		fmt.Println(res.StatusCode)
	}
	// Output:
	// 403
	// 200
}
