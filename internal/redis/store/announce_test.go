package store_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
)

// Of messages that come back for the same time any may be the first argument. Sleepers are told
// whichever is the head then.
func TestNackInAnyOrderTellsOfTheHead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.push("a", "b", "c")
	heard := b.raw.Subscribe(b.ctx, b.Channel())
	t.Cleanup(func() { _ = heard.Close() })
	if _, err := heard.Receive(b.ctx); err != nil {
		t.Fatal(err)
	}
	var rs []backend.Return
	for _, d := range b.claim(b.Claim, time.Minute).Deliveries {
		rs = append(rs, backend.Return{Lease: d.Lease(), Delay: time.Hour})
	}
	slices.Reverse(rs)
	b.all(b.Nack(b.ctx, rs))
	msg, err := heard.ReceiveTimeout(b.ctx, patience)
	if err != nil {
		t.Fatalf("no fetcher is told: %v", err)
	}
	page, _, err := b.Peek(b.ctx, "", 1)
	must(b.t, err)
	if want := strconv.FormatInt(page[0].Due.UnixMilli(), 10); msg.(*redis.Message).Payload != want {
		t.Errorf("sleepers are told %v, want %s", msg, want)
	}
}
