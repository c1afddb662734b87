package shard

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// TestSlots compares slots with those of a real server.
func TestSlots(t *testing.T) {
	client := testenv.SharedRedisCluster(t).Client(t)
	for _, tag := range append(Tags("orders", 16), "", "a", "orders", strings.Repeat("ü", 100)) {
		slot, err := client.ClusterKeySlot(t.Context(), tag).Result()
		if err != nil {
			t.Fatal(err)
		}
		if int(slot) != slotOf(tag) {
			t.Errorf("%q is in slot %d, computed is %d", tag, slot, slotOf(tag))
		}
	}
}

func TestTags(t *testing.T) {
	for _, n := range []int{1, 2, 16, Most} {
		for k, tag := range Tags("a:b.c-1", n) {
			if slot := slotOf(tag); slot*n/slots != k {
				t.Errorf("shard %d of %d is in slot %d", k, n, slot)
			}
		}
	}
}

func TestValid(t *testing.T) {
	for n := -1; n <= 2*Most; n++ {
		power := n > 0 && n <= Most && n&(n-1) == 0
		if err := Valid("Shards", n); (err == nil) != power || err != nil && !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("%d: %v", n, err)
		}
	}
}

// TestSpread puts ids as users make them into shards of about the same size. The limit is 4 standard
// deviations: 1 of 100 runs would exceed it for random ids, and these ids are always the same.
func TestSpread(t *testing.T) {
	const n, ids = 64, 64_000
	for _, format := range []string{"%d", "order-%d", "%08d", "user/%d/reminder"} {
		var counts [n]int
		for i := range ids {
			counts[of(fmt.Sprintf(format, i), n)]++
		}
		for k, c := range counts {
			if c < 1000-128 || c > 1000+128 {
				t.Errorf("%q: shard %d has %d of %d ids", format, k, c, ids)
			}
		}
	}
}
