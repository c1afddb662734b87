package memory

import (
	"context"
	"testing"
	"time"
)

func TestLongestSleeperWakesFirst(t *testing.T) {
	q, clock := open(t)
	first := receive(context.Background(), t, q)
	second := receive(context.Background(), t, q)
	mustPush(t, q, "a", time.Hour)
	clock.Advance(time.Hour)
	mustGet(t, first, "a")
	mustPush(t, q, "b", 0)
	mustGet(t, second, "b")
}

// A sleeper whose context ends leaves neither itself nor the timer behind.
func TestLeavingStopsTheTimer(t *testing.T) {
	q, clock := open(t)
	mustPush(t, q, "a", time.Hour)
	ctx, cancel := context.WithCancel(context.Background())
	got := receive(ctx, t, q)
	must(t, clock.BlockUntilContext(ctx, 1))
	cancel()
	if r := mustReturn(t, got); r.err != context.Canceled || r.ds != nil {
		t.Errorf("got %v", r)
	}
	mustAll(t, q.Cancel(context.Background(), []string{"a"}))
	mustBeEmpty(t, q.store)
}
