package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
)

// TestMovedMessagesComeInTurn leaves messages in READY by a batch that stops at its limit of bytes.
// Messages due earlier come before them, and messages with the same due time come after.
func TestMovedMessagesComeInTurn(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, b *bench, _ string, way claimer) {
		b.large(5)
		first := b.claimOf(b.MoveAndTake, 5)
		if len(first) != 2 || first[0].ID != "large 0" {
			t.Fatalf("the batch has %d messages", len(first))
		}
		b.all(b.Nack(b.ctx, []backend.Return{{Lease: first[1].Lease(), Untouched: true}}))
		b.all(b.Schedule(b.ctx, []backend.Message{{ID: "tie", Due: time.Unix(1, 0)}, {ID: "earlier", Due: time.Unix(0, 0)}}))
		b.ack(first[0])
		var got []string
		for range 6 {
			ds := b.claimOf(way, 1)
			if len(ds) != 1 {
				t.Fatalf("got %d messages after %q", len(ds), got)
			}
			got = append(got, ds[0].ID)
			if ds[0].Attempt != 1 {
				t.Errorf("%s comes at attempt %d", ds[0].ID, ds[0].Attempt)
			}
			b.ack(ds[0])
		}
		if want := []string{"earlier", "large 1", "large 2", "large 3", "large 4", "tie"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		b.empty()
	})
}

func (b *bench) claimOf(way claimer, limit int) []backend.Delivery {
	b.t.Helper()
	c, err := way(b.ctx, limit, time.Minute, b.t.Name()+time.Now().String())
	must(b.t, err)
	return c.Deliveries
}
