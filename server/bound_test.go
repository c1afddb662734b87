package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/delayq/delayq/internal/wire"
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
		r := f.post(t, "receive", `{"limit": 1000, "lease_for": "1h"}`)
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
