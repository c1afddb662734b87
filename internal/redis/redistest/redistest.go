// Package redistest has what the tests of the backends on Redis share: helpers, and scenarios that
// each backend runs on its own scripts.
package redistest

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

// Patience bounds every wait for an event that must happen; it only matters when something is
// broken.
const Patience = time.Minute

// Quiet is how long a test looks for an event that must not happen. A machine that is too busy for
// the event to happen in that time hides a fault, and fails no test.
const Quiet = 100 * time.Millisecond

// Must ends the test unless all errors are nil.
func Must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// Wants checks that each of some outcomes is an error that matches.
func Wants(t testing.TB, errs []error, want error) {
	t.Helper()
	if len(errs) == 0 {
		t.Errorf("all went well, want %v", want)
	}
	for _, err := range errs {
		if !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}

// Await asks until the condition holds, for Patience at most.
func Await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v for %s", Patience, what)
		}
	}
}

// Deadline returns a context that bounds a test's calls.
func Deadline(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*Patience)
	t.Cleanup(cancel)
	return ctx
}

// Silent are the options of a queue that logs nothing.
func Silent() backend.Options { return backend.Options{Logger: slog.New(slog.DiscardHandler)} }

// Nowhere returns a client for backends that send nothing.
func Nowhere(t testing.TB) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// An Opener is a backend, or the part of one that opens queues.
type Opener interface {
	Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error)
}

// Open opens a queue that logs nothing.
func Open(t testing.TB, b Opener, name string) backend.Queue {
	t.Helper()
	q, err := b.Open(t.Context(), name, Silent())
	Must(t, err)
	return q
}

// Leases are the leases of some deliveries.
func Leases(ds []backend.Delivery) []backend.Lease {
	ls := make([]backend.Lease, len(ds))
	for i := range ds {
		ls[i] = ds[i].Lease()
	}
	return ls
}

// Returns are requests to give leases back, all alike.
func Returns(ls []backend.Lease, like backend.Return) []backend.Return {
	rs := make([]backend.Return, len(ls))
	for i, l := range ls {
		rs[i] = like
		rs[i].Lease = l
	}
	return rs
}

// DeadLetters are requests to make dead letters of the leases' messages.
func DeadLetters(ls []backend.Lease, reason string) []backend.DeadLetterRequest {
	rs := make([]backend.DeadLetterRequest, len(ls))
	for i, l := range ls {
		rs[i] = backend.DeadLetterRequest{Lease: l, Reason: reason}
	}
	return rs
}

// Bodies are the bodies of some deliveries.
func Bodies(ds []backend.Delivery) []string {
	texts := make([]string, len(ds))
	for i, d := range ds {
		texts[i] = string(d.Body)
	}
	return texts
}

// Calls returns how often a server has run each command, in scripts too.
func Calls(t testing.TB, client redis.Cmdable) map[string]int {
	t.Helper()
	info, err := client.Info(t.Context(), "commandstats").Result()
	Must(t, err)
	calls := make(map[string]int)
	for line := range strings.Lines(info) {
		name, stats, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if ok {
			count, _, _ := strings.Cut(stats, ",")
			calls[name], err = strconv.Atoi(count)
			Must(t, err)
		}
	}
	return calls
}

// Wipe deletes the keys that match a pattern, for a test that runs again on a shared server.
func Wipe(t testing.TB, client redis.UniversalClient, pattern string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	keys, err := client.Keys(ctx, pattern).Result()
	Must(t, err)
	if len(keys) > 0 {
		Must(t, client.Del(ctx, keys...).Err())
	}
}

// Write puts something of a type under a key, as another program may.
func Write(ctx context.Context, t testing.TB, client redis.Cmdable, kind, key string) {
	t.Helper()
	// In one step: between two a sweep may find the queue empty, and tidy up.
	_, err := client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Del(ctx, key)
		switch kind {
		case "string":
			p.Set(ctx, key, "x", 0)
		case "list":
			p.RPush(ctx, key, "x")
		case "hash":
			p.HSet(ctx, key, "x", "y")
		case "set":
			p.SAdd(ctx, key, "x")
		case "zset":
			p.ZAdd(ctx, key, redis.Z{Member: "x"})
		case "stream":
			p.XAdd(ctx, &redis.XAddArgs{Stream: key, Values: []string{"x", "y"}})
		}
		return nil
	})
	Must(t, err)
}

// RoundTrip pushes and receives a message through a URL, and closes.
func RoundTrip(t testing.TB, rawURL string) {
	t.Helper()
	ctx := Deadline(t)
	q, err := delayq.Open(ctx, rawURL)
	Must(t, err)
	defer func() { Must(t, q.Close()) }()
	_, err = q.Push(ctx, []byte("hello"), delayq.After(20*time.Millisecond))
	Must(t, err)
	d, err := q.Receive(ctx)
	Must(t, err)
	if string(d.Body) != "hello" {
		t.Errorf("got %q", d.Body)
	}
	Must(t, d.Ack(ctx))
}

// Pages lists all pages of a listing.
func Pages[T any](ctx context.Context, t testing.TB, list func(context.Context, string, int) ([]T, string, error), limit int) (pages [][]T) {
	t.Helper()
	for cursor := ""; ; {
		page, next, err := list(ctx, cursor, limit)
		Must(t, err)
		if len(page) > limit {
			t.Errorf("a page of %d has %d entries", limit, len(page))
		}
		pages = append(pages, page)
		if cursor = next; next == "" {
			return pages
		}
	}
}

// IsRegistry reports whether a key has the names of queues. It is there while one of them has been
// open lately, with messages or without.
func IsRegistry(key string) bool {
	return strings.HasSuffix(key, ":queues") || strings.HasPrefix(key, "delayq_queues:")
}

// Stays reports whether a key may be there when all messages of its queue are gone: it has the names
// of queues, or counts of pushes and acks.
func Stays(key string) bool { return IsRegistry(key) || strings.HasSuffix(key, "}:counts") }
