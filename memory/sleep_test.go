package memory

import (
	"context"
	"errors"
	"runtime"
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

// A woken sleeper whose context has ended must not take the wake-up with it.
func TestWokenSleeperThatLeavesPassesItOn(t *testing.T) {
	q, _ := open(t)
	receives := func(ctx context.Context, z *sleeper) *sleeper {
		_, z, err := q.takeOrSleep(ctx, z, 1, time.Minute)
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		return z
	}
	ctx, cancel := context.WithCancel(context.Background())
	leaver, stayer := receives(ctx, nil), receives(context.Background(), nil)
	mustPush(t, q, "a", 0)
	if len(leaver.wake) != 1 || len(stayer.wake) != 0 {
		t.Fatalf("woken: first %d, second %d", len(leaver.wake), len(stayer.wake))
	}
	cancel()
	receives(ctx, leaver)
	if len(stayer.wake) != 1 {
		t.Error("the wake-up is lost")
	}
}

// A Receive that was called before Close and runs on after it takes nothing.
func TestClosedHandleTakesNothing(t *testing.T) {
	for i := range 2000 {
		b := New()
		closing, open := openOn(t, b, nil), openOn(t, b, nil)
		got := make(chan int, 1)
		go func() {
			ds, _ := closing.Receive(context.Background(), 1, time.Minute)
			got <- len(ds)
		}()
		if i%2 == 0 {
			runtime.Gosched()
		}
		_ = closing.Close()
		mustPush(t, open, "a", 0)
		if n := <-got; n != 0 {
			t.Fatalf("round %d: the closed handle took %d messages", i, n)
		}
	}
}

// Messages that come at once wake as many as there are messages.
func TestOneWakesTheNext(t *testing.T) {
	q, clock := open(t)
	var all []<-chan received
	for range 5 {
		all = append(all, receive(context.Background(), t, q))
	}
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		mustPush(t, q, id, time.Minute)
	}
	clock.Advance(time.Minute)
	for _, got := range all {
		if r := mustReturn(t, got); r.err != nil {
			t.Error(r.err)
		}
	}
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

func TestNewHeadWakesInTime(t *testing.T) {
	q, clock := open(t)
	mustPush(t, q, "late", 50*time.Second)
	got := receive(context.Background(), t, q)
	mustPush(t, q, "early", 10*time.Second)
	clock.Advance(10 * time.Second)
	mustGet(t, got, "early")
}

func TestRescheduledHeadWakesInTime(t *testing.T) {
	q, clock := open(t)
	mustPush(t, q, "a", 50*time.Second)
	got := receive(context.Background(), t, q)
	moveTo(t, q, "a", 10*time.Second)
	clock.Advance(10 * time.Second)
	mustGet(t, got, "a")
}

func TestEndOfLeaseWakes(t *testing.T) {
	q, clock := open(t)
	mustPush(t, q, "a", 0)
	mustTake(t, q, 1, 30*time.Second)
	got := receive(context.Background(), t, q)
	clock.Advance(30*time.Second - 1)
	if len(got) > 0 {
		t.Fatal("taken while another holds it")
	}
	clock.Advance(1)
	if d := mustGet(t, got, "a"); d.Attempt != 2 {
		t.Errorf("attempt %d", d.Attempt)
	}
}

// A lease that ends sooner than the head is due, or later.
func TestEarlierEventArmsTheTimer(t *testing.T) {
	q, clock := open(t)
	mustPush(t, q, "held", 0)
	mustTake(t, q, 1, 20*time.Second)
	mustPush(t, q, "due", 10*time.Second)
	first := receive(context.Background(), t, q)
	second := receive(context.Background(), t, q)
	clock.Advance(10 * time.Second)
	mustGet(t, first, "due")
	clock.Advance(10 * time.Second)
	mustGet(t, second, "held")
}
