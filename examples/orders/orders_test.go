package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const patience = 2 * time.Minute

// The service on every kind of store: unpaid orders are cancelled, unreviewed ones get five stars,
// and others are left alone.
func TestOrders(t *testing.T) {
	t.Parallel()
	for name, queue := range map[string]func(*testing.T) string{
		"memory":   func(*testing.T) string { return "memory:///orders" },
		"zsetpoll": func(t *testing.T) string { return onRedis(t, "zsetpoll", "") },
		"keyspace": func(t *testing.T) string { return onRedis(t, "keyspace", "") },
		"redisson": func(t *testing.T) string { return onRedis(t, "redisson", "?codec=envelope") },
		"rabbitmq": func(t *testing.T) string {
			broker := strings.Replace(testenv.SharedRabbitMQ(t).URL(), "amqp://", "rabbitmq://", 1)
			testenv.WarmRabbit(t, func() (delayq.Queue, error) {
				return delayq.Open(t.Context(), broker+"/other?namespace=examples", delayq.WithLogger(slog.New(slog.DiscardHandler)))
			})
			return broker + "/orders?namespace=examples"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// A busy machine may take seconds until an order is paid, or a shipped one reviewed.
			s := startShop(t, "--url", queue(t), "--unpaid", "10s", "--unreviewed", "10s")
			for range 3 {
				s.post("/orders", `{"item":"a book"}`, http.StatusCreated)
			}
			for _, step := range []string{"/orders/2/pay", "/orders/3/pay", "/orders/2/ship", "/orders/3/ship"} {
				s.post(step, "", http.StatusOK)
			}
			s.post("/orders/3/review", `{"stars":2}`, http.StatusOK)
			s.becomes(1, order{ID: 1, Item: "a book", State: cancelled})
			s.becomes(2, order{ID: 2, Item: "a book", State: reviewed, Stars: 5})
			s.becomes(3, order{ID: 3, Item: "a book", State: reviewed, Stars: 2})
			s.post("/orders/1/pay", "", http.StatusConflict)
			s.post("/orders/9/pay", "", http.StatusNotFound)
			s.post("/orders", "no JSON", http.StatusBadRequest)
		})
	}
}

func onRedis(t *testing.T, scheme, query string) string {
	t.Helper()
	u, err := url.Parse(testenv.SharedRedis(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	u.Scheme, u.Path = scheme, "/orders-"+scheme
	return u.String() + query
}

type service struct {
	t   *testing.T
	url string
}

// startShop runs the service until the test ends.
func startShop(t *testing.T, args ...string) service {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, append(args, "--addr", "127.0.0.1:0"), w)
		_ = w.Close()
	}()
	lines := bufio.NewScanner(r)
	at := ""
	for found := false; !found && lines.Scan(); { // the log comes there too
		at, found = strings.CutPrefix(lines.Text(), "listening on ")
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the service ended with %v", err)
		}
	})
	if !strings.HasPrefix(at, "http://") {
		t.Fatalf("the service listens at %q, %v", at, lines.Err())
	}
	return service{t, at}
}

func (s service) post(path, body string, want int) {
	s.t.Helper()
	r, err := http.Post(s.url+path, "application/json", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	if text, _ := io.ReadAll(r.Body); r.StatusCode != want {
		s.t.Errorf("POST %s: %s %s, want %d", path, r.Status, text, want)
	}
}

// becomes waits for the state of an order.
func (s service) becomes(id int, want order) {
	s.t.Helper()
	var got order
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		r, err := http.Get(fmt.Sprintf("%s/orders/%d", s.url, id))
		if err != nil {
			s.t.Fatal(err)
		}
		err = json.NewDecoder(r.Body).Decode(&got)
		_ = r.Body.Close()
		if err != nil {
			s.t.Fatal(err)
		}
		if got == want {
			return
		}
	}
	s.t.Errorf("order %d is %+v, want %+v", id, got, want)
}
