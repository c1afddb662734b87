package memory

import (
	"context"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSleepersAreAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l sleepers
		var want []*sleeper
		t.Repeat(map[string]func(*rapid.T){
			"add": func(*rapid.T) {
				z := newSleeper()
				l.add(z)
				want = append(want, z)
			},
			"remove": func(t *rapid.T) {
				if len(want) == 0 {
					t.Skip("empty")
				}
				i := rapid.IntRange(0, len(want)-1).Draw(t, "sleeper")
				l.remove(want[i])
				want = slices.Delete(want, i, i+1)
			},
			"wake": func(t *rapid.T) {
				l.wakeFirst()
				if len(want) > 0 {
					if len(want[0].wake) != 1 || want[0].asleep {
						t.Fatalf("the first was not woken")
					}
					want = want[1:]
				}
			},
			"": func(t *rapid.T) { mustBeList(t, &l, want) },
		})
	})
}

func mustBeList(t tb, l *sleepers, want []*sleeper) {
	t.Helper()
	var there, back []*sleeper
	for z := l.first; z != nil; z = z.next {
		there = append(there, z)
	}
	for z := l.last; z != nil; z = z.prev {
		back = append(back, z)
	}
	slices.Reverse(back)
	if !slices.Equal(there, want) || !slices.Equal(back, want) {
		t.Fatalf("%d sleepers one way, %d the other, want %d", len(there), len(back), len(want))
	}
	for _, z := range want {
		if !z.asleep || len(z.wake) > 0 {
			t.Fatalf("one in the list is awake")
		}
	}
}

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
