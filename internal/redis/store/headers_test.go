package store_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
)

// TestNewHeadersOfLargeMessages gives back many of them at once: a script that copied them all
// would keep others waiting.
func TestNewHeadersOfLargeMessages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ids := b.large(7)
	var rs []backend.Return
	for len(rs) < len(ids) {
		for _, d := range b.claim(b.Claim, time.Minute).Deliveries {
			rs = append(rs, backend.Return{Lease: d.Lease(), NewHeaders: true, Headers: map[string]string{"of": d.ID}})
		}
	}
	rs = append(rs, rs[3], backend.Return{Lease: rs[4].Lease})
	errs := b.Nack(b.ctx, rs)
	for i := range rs {
		if err := errs[i]; i < len(ids) && err != nil || i >= len(ids) && !errors.Is(err, backend.ErrLeaseLost) {
			t.Errorf("giving back number %d: %v", i, err)
		}
	}
	for left := len(ids); left > 0; {
		for _, d := range b.claim(b.Claim, time.Minute).Deliveries {
			if want := map[string]string{"of": d.ID}; fmt.Sprint(d.Headers) != fmt.Sprint(want) || len(d.Body) != 6<<20 || d.Attempt != 2 {
				t.Errorf("%s came at attempt %d with %d bytes and the headers %q", d.ID, d.Attempt, len(d.Body), d.Headers)
			}
			b.ack(d)
			left--
		}
	}
	b.empty()
}

// TestNewHeadersCountAsContent has small messages get large headers: no reply is larger for that
// than one of large messages.
func TestNewHeadersCountAsContent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ids := numbered(300)
	b.push(ids...)
	var rs []backend.Return
	for _, l := range b.claimMany(b.Claim, time.Minute, ids) {
		rs = append(rs, backend.Return{Lease: l, NewHeaders: true, Headers: map[string]string{"large": fmt.Sprintf("%*d", 60<<10, 1)}})
	}
	b.all(b.Nack(b.ctx, rs))
	for how, way := range ways(b.Store) {
		c, err := way(b.ctx, 500, time.Minute, how)
		if n := len(c.Deliveries); n == 0 || n > 150 || err != nil {
			t.Errorf("a claim by %s has %d messages of 60 KiB, %v", how, n, err)
		}
	}
}
