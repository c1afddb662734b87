package store_test

import (
	"testing"
	"time"
)

// The message of an ended lease is due before messages pushed since, however long no worker has
// claimed.
func TestEndedLeaseComesInTurn(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, b *bench, _ string, way claimer) {
		b.push("first")
		end := b.claim(way, 20*time.Millisecond).Deliveries[0].Until
		b.pushAfter(30*time.Millisecond, "second", "third")
		await(t, "the server's clock", func() bool { return b.raw.Time(b.ctx).Val().After(end.Add(30 * time.Millisecond)) })
		if ds := b.claim(way, time.Minute).Deliveries; len(ds) == 0 || ds[0].ID != "first" {
			t.Errorf("got %v, want the first to come first", ds)
		}
	})
}
