package store_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/fault"
)

// TestStoppedNackChangesHeadersOrNothing stops the script at each of its writes in turn. Messages
// that it has given back have the new headers, all of them, and those that stay leased the old
// ones.
func TestStoppedNackChangesHeadersOrNothing(t *testing.T) {
	t.Parallel()
	changed := 0
	for n, met := 1, true; met; n++ {
		t.Run(fmt.Sprint("write ", n), func(t *testing.T) {
			tr := newTrial(t)
			leasedThree(tr)
			client := redis.NewClient(tr.raw.Options())
			defer func() { _ = client.Close() }()
			client.AddHook(fault.Stop("-- Gives messages back", n, ""))
			err := settleAll("nack with headers")(tr, tr.over(client))
			if met = err != nil; met {
				changed = tr.allOrNone(err)
			}
		})
	}
	if changed != len(threeIDs) {
		t.Errorf("stopped at its last write, the script has changed the headers of %d messages", changed)
	}
}

// allOrNone returns how many messages a nack has changed that was stopped.
func (tr *trial) allOrNone(stop error) (changed int) {
	tr.t.Helper()
	given := 0
	for _, member := range tr.raw.ZRange(tr.ctx, tr.key("due"), 0, -1).Val() {
		if member[7:11] == tr.generationOf(member) {
			given++
		}
	}
	tr.clock.Advance(2 * time.Hour)
	for _, d := range tr.claim(tr.Claim, time.Minute).Deliveries {
		if maps.Equal(d.Headers, newHeaders) {
			changed++
		}
	}
	if given != 0 && given != len(threeIDs) || changed != given {
		tr.t.Errorf("%v: %d messages were given back, and %d have the new headers", stop, given, changed)
	}
	return changed
}

// generationOf returns which member the message of this one has now.
func (tr *trial) generationOf(member string) string {
	v := tr.raw.HGet(tr.ctx, tr.key("gens"), member[11:]).Val()
	return v[:min(4, len(v))]
}

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
