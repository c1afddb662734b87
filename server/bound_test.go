package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/wire"
	"github.com/delayq/delayq/memory"
	"github.com/delayq/delayq/server"
)

// A reply has the bodies of 16 messages.
const (
	large   = 1 << 12
	replies = 16 * large
)

// pushLarge pushes 40 messages of 4 KiB.
func pushLarge(t *testing.T, f *fixture) (ids []string) {
	t.Helper()
	for i := range 40 {
		ids = append(ids, fmt.Sprintf("m%02d", i))
		f.post(t, "messages", `{"id": "`+ids[i]+`", "body": "`+strings.Repeat("x", large)+`"}`).want(t, http.StatusCreated, "")
	}
	return ids
}

// A receive hands out as many messages as fit into a reply, in their order. The others are not touched.
func TestReceiveIsBounded(t *testing.T) {
	t.Parallel()
	f := start(t, server.MaxReplyBytes(replies))
	ids := pushLarge(t, f)
	for len(ids) > 0 {
		r := f.post(t, "receive", `{"limit": 1000, "lease_for": "1h", "wait": "10s"}`)
		var got wire.Received
		r.into(t, &got)
		if len(got.Messages) == 0 || len(r.body) > 20*large {
			t.Fatalf("%d messages in %d bytes", len(got.Messages), len(r.body))
		}
		for i, d := range got.Messages {
			if d.ID != ids[i] || d.Attempt != 1 {
				t.Errorf("got %s, attempt %d; want %s, 1", d.ID, d.Attempt, ids[i])
			}
		}
		ids = ids[len(got.Messages):]
		if ready := f.stats(t).Ready; ready != int64(len(ids)) {
			t.Fatalf("%d are ready, want %d", ready, len(ids))
		}
	}
}

// A page ends when it is full, and the next one goes on behind it.
func TestPagesAreBounded(t *testing.T) {
	t.Parallel()
	f := start(t, server.MaxReplyBytes(replies))
	ids := pushLarge(t, f)
	for cursor, pages := "", 0; ; pages++ {
		r := f.call(t, http.MethodGet, orders+"messages?limit=1000&cursor="+cursor, "")
		var got wire.Page
		r.into(t, &got)
		if len(got.Messages) == 0 || len(r.body) > 20*large {
			t.Fatalf("%d messages in %d bytes", len(got.Messages), len(r.body))
		}
		for i, m := range got.Messages {
			if m.ID != ids[i] {
				t.Errorf("got %s, want %s", m.ID, ids[i])
			}
		}
		ids, cursor = ids[len(got.Messages):], got.Next
		if cursor == "" {
			break
		}
	}
	if len(ids) > 0 {
		t.Errorf("%d are on no page", len(ids))
	}
}

// A get returns what fits, and says of the rest that it did not fit.
func TestGetIsBounded(t *testing.T) {
	t.Parallel()
	f := start(t, server.MaxReplyBytes(replies))
	r := f.post(t, "get", `{"ids": ["`+strings.Join(pushLarge(t, f), `", "`)+`"]}`)
	var got wire.Results
	r.into(t, &got)
	if len(got.Results) != 40 || got.Results[0].Message == nil || len(r.body) > 20*large {
		t.Fatalf("%d results in %d bytes", len(got.Results), len(r.body))
	}
	for i, result := range got.Results {
		if full := result.Error != nil && result.Error.Code == wire.ReplyFull; full == (result.Message != nil) {
			t.Errorf("result %d: %+v", i, result.Error)
		}
	}
}

// An asked store counts how many messages it was asked for by receives, and by looks.
type asked struct {
	backend.Backend
	received, looked *atomic.Int64
}

func (s asked) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	q, err := s.Backend.Open(ctx, name, o)
	return askedQueue{q, s}, err
}

type askedQueue struct {
	backend.Queue
	s asked
}

func (q askedQueue) Receive(
	ctx context.Context, limit int, lease time.Duration,
) ([]backend.Delivery, error) {
	q.s.received.Add(int64(limit))
	return q.Queue.Receive(ctx, limit, lease)
}

func (q askedQueue) Peek(
	ctx context.Context, cursor string, limit int,
) ([]backend.Pending, string, error) {
	q.s.looked.Add(1)
	return q.Queue.Peek(ctx, cursor, limit)
}

// startWith begins a server whose queue has so many messages, each with a body of so many bytes.
func startWith(
	t *testing.T, messages, bytes int, opts ...server.Option,
) (f *fixture, s asked, ids []string) {
	t.Helper()
	s = asked{memory.New(), new(atomic.Int64), new(atomic.Int64)}
	q, err := s.Backend.Open(t.Context(), "orders", backend.Options{})
	must(t, err)
	defer func() { must(t, q.Close()) }()
	for i := range messages {
		ids = append(ids, fmt.Sprintf("m%03d", i))
		m := backend.Message{ID: ids[i], Body: []byte(strings.Repeat("x", bytes))}
		must(t, errors.Join(q.Schedule(t.Context(), []backend.Message{m})...))
	}
	return startOn(t, s, opts...), s, ids
}

// The first reply is bounded as the others are, though nothing is known of the sizes.
func TestFirstReplyIsBounded(t *testing.T) {
	t.Parallel()
	for _, replyBytes := range []int{4 << 10, 3 << 20} {
		f, s, ids := startWith(t, 16, 1<<20, server.MaxReplyBytes(replyBytes))
		fit := max(1, replyBytes>>20)
		var page wire.Page
		f.call(t, http.MethodGet, orders+"messages", "").into(t, &page)
		if len(page.Messages) != fit || page.Next == "" {
			t.Errorf("a page of %d bytes has %d messages", replyBytes, len(page.Messages))
		}
		f.call(t, http.MethodGet, orders+"messages?cursor="+page.Next, "").into(t, &page)
		if page.Messages[0].ID != ids[fit] {
			t.Errorf("the second page begins with %s", page.Messages[0].ID)
		}
		var got wire.Results
		f.post(t, "get", `{"ids": ["`+strings.Join(ids, `", "`)+`"]}`).into(t, &got)
		if got.Results[fit-1].Message == nil || got.Results[fit].Message != nil {
			t.Errorf("a get of %d bytes has not %d messages", replyBytes, fit)
		}
		if ds := f.receive(t); len(ds) != fit || s.received.Load() != int64(fit) {
			t.Errorf("%d messages of %d, want %d", len(ds), s.received.Load(), fit)
		}
		if st := f.stats(t); st.Ready != int64(16-fit) || st.InFlight != int64(fit) {
			t.Errorf("got %+v", st)
		}
	}
}

// Large messages behind small ones end a page. They do not take a page beyond its bound.
func TestPageEndsBeforeLargeMessages(t *testing.T) {
	t.Parallel()
	f, _, _ := startWith(t, 20, 10, server.MaxReplyBytes(1<<20))
	for i := range 3 {
		message := fmt.Sprintf(`{"id": "n%02d", "body": %q}`, i, strings.Repeat("x", 700<<10))
		f.post(t, "messages", message).want(t, http.StatusCreated, "")
	}
	for cursor, want := "", 21; ; want = 1 {
		var page wire.Page
		f.call(t, http.MethodGet, orders+"messages?cursor="+cursor, "").into(t, &page)
		if len(page.Messages) != want {
			t.Fatalf("%d messages, want %d", len(page.Messages), want)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
}

// A page of small messages takes no more looks than one to know their size, and one for the rest.
func TestPageOfSmallMessages(t *testing.T) {
	t.Parallel()
	f, s, _ := startWith(t, 100, 10)
	var page wire.Page
	f.call(t, http.MethodGet, orders+"messages", "").into(t, &page)
	if n := s.looked.Load(); n != 2 || len(page.Messages) != 100 {
		t.Errorf("%d messages by %d looks", len(page.Messages), n)
	}
}
