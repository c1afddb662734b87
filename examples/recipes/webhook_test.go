package recipes_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"

	"github.com/delayq/delayq"
)

// deliver posts a message to a customer's server.
func deliver(ctx context.Context, url string, d *delayq.Delivery) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(d.Body))
	if err != nil {
		return fmt.Errorf("%w: %w", delayq.ErrDeadLetter, err) // no retry makes the URL right
	}
	req.Header.Set("Idempotency-Key", d.ID) // the customer sees a repetition by it
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err // not reached: retry by the policy
	}
	defer resp.Body.Close()
	err = fmt.Errorf("webhook %s: %s", url, resp.Status)
	switch {
	case resp.StatusCode < 300:
		return nil
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode == http.StatusServiceUnavailable:
		if seconds, bad := strconv.Atoi(resp.Header.Get("Retry-After")); bad == nil && 0 <= seconds && seconds <= 3600 {
			return delayq.RetryAfter(err, time.Duration(seconds)*time.Second) // when the server says
		}
		return err
	case resp.StatusCode < 500:
		return fmt.Errorf("%w: %w", delayq.ErrDeadLetter, err) // the request is wrong, and stays wrong
	default:
		return err
	}
}

// consumeWebhooks tries for about a day and a half, and then keeps the message as a dead letter.
func consumeWebhooks(ctx context.Context, q delayq.Queue, url string) error {
	return q.Consume(ctx, func(ctx context.Context, d *delayq.Delivery) error {
		return deliver(ctx, url, d)
	},
		delayq.Workers(32),
		delayq.Timeout(10*time.Second),
		delayq.Retry(delayq.Delays{10 * time.Second, time.Minute, 10 * time.Minute, time.Hour, 12 * time.Hour}),
		delayq.MaxAttempts(8))
}

// The customer's server is busy, then works, then rejects a request.
func Example_webhook() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	q, err := delayq.New(ctx, "webhooks", delayq.InMemory(), delayq.WithLogger(slog.New(slog.DiscardHandler)))
	check(err)
	defer q.Close()
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		switch requests {
		case 1:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		case 2:
			_, err := q.Push(ctx, []byte(`{"event":`), delayq.ID("event-2")) // so that its request is the third
			check(err)
			w.WriteHeader(http.StatusOK)
		default:
			defer stop()
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	defer server.Close()

	_, err = q.Push(ctx, []byte(`{"event":"paid"}`), delayq.ID("event-1"))
	check(err)
	check(consumeWebhooks(ctx, q, server.URL))
	fmt.Println("requests:", requests)
	for dead, err := range q.Dead().All(context.Background()) {
		check(err)
		fmt.Println("dead:", dead.ID, "after attempts:", dead.Attempts)
	}
	// Output:
	// requests: 3
	// dead: event-2 after attempts: 1
}
