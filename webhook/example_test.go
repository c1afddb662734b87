package webhook_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/webhook"
)

// A shop has its orders posted to itself half an hour after they were made.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	shop := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Printf("POST %s: order %s, %s, attempt %s\n", r.URL.Path, r.Header.Get("webhook-id"), body, r.Header.Get("delayq-attempt"))
		stop()
	}))
	defer shop.Close()
	q, err := delayq.New(ctx, "orders", delayq.InMemory(), delayq.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		panic(err)
	}
	defer q.Close()
	if _, err = q.Push(ctx, []byte(`{"paid":false}`), delayq.ID("18")); err != nil { // delayq.After(30*time.Minute) in a shop
		panic(err)
	}
	post, err := webhook.New(webhook.To(shop.URL+"/unpaid"), webhook.Secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
	if err != nil {
		panic(err)
	}
	if err = q.Consume(ctx, post, delayq.Workers(16)); err != nil {
		panic(err)
	}
	// Output: POST /unpaid: order 18, {"paid":false}, attempt 1
}
