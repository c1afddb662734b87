package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
)

const soakRounds = 9

// leaksOf samples a meter, with some work before each sample, and returns the names of the gauges
// that leak.
func leaksOf(t *testing.T, m Meter, rounds int, before func(round int)) []string {
	t.Helper()
	w := &Watch{Backend: "none", Meters: []Meter{m}}
	for i := range rounds {
		before(i)
		must(t, w.Sample(t.Context(), Round{Messages: 1, Load: time.Second}))
	}
	return each(w.Leaks(), func(g Growth) string { return g.Name })
}

func mustLeak(t *testing.T, m Meter, before func(round int), want ...string) {
	t.Helper()
	if got := leaksOf(t, m, soakRounds, before); !slices.Equal(got, want) {
		t.Errorf("found leaks of %v, want %v", got, want)
	}
}

func TestSoakFindsGoroutines(t *testing.T) {
	end := make(chan struct{})
	defer close(end)
	mustLeak(t, ProcessMeter(), func(int) {
		for range 5 {
			go func() { <-end }()
		}
	}, "goroutines")
}

func TestSoakFindsFiles(t *testing.T) {
	mustLeak(t, ProcessMeter(), func(int) {
		for range 3 {
			f, err := os.Open(os.DevNull)
			must(t, err)
			t.Cleanup(func() { _ = f.Close() })
		}
	}, "files")
}

func TestSoakFindsHeap(t *testing.T) {
	kept := make(map[int][]byte)
	mustLeak(t, ProcessMeter(), func(round int) { kept[round] = make([]byte, 1<<20) }, "heap")
	if len(kept) != soakRounds { // and they were kept until here
		t.Errorf("kept %d blocks", len(kept))
	}
}

func TestSoakFindsKeysAndMemory(t *testing.T) {
	c := testenv.Redis(t, testenv.Private()).Client(t)
	set := func(size int) func(int) {
		return func(round int) {
			must(t, c.Set(t.Context(), fmt.Sprintf("left:%d", round), strings.Repeat("x", size), 0).Err())
		}
	}
	mustLeak(t, RedisMeter(c), set(1), "keys")
	must(t, c.FlushAll(t.Context()).Err())
	mustLeak(t, RedisMeter(c), set(1<<20), "store memory", "keys")
	mustLeak(t, RedisMeter(c), func(int) {}) // keys from before are no growth
}

func TestSoakFindsDepth(t *testing.T) {
	b, err := memoryTarget(t).opens[0](t.Context())
	must(t, err)
	q, err := b.Open(t.Context(), queueName, quiet)
	must(t, err)
	defer func() { _ = q.Close() }()
	mustLeak(t, DepthMeter(b, queueName), func(round int) {
		must(t, errors.Join(q.Schedule(t.Context(), []backend.Message{{ID: strconv.Itoa(round), Delay: time.Hour}})...))
	}, "depth")
}

// TestSoakIgnoresEndedGoroutines does what a leak does, and cleans up.
func TestSoakIgnoresEndedGoroutines(t *testing.T) {
	mustLeak(t, ProcessMeter(), func(int) {
		end, begun, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
		for range 100 {
			go func() { begun <- struct{}{}; <-end; ended <- struct{}{} }()
			<-begun
		}
		close(end)
		for range 100 {
			<-ended
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		Calm(ctx, 20*time.Millisecond)
	})
}

// series is a meter that reads made-up levels.
func series(levels []int64, bound int64) Meter {
	return Meter{
		Gauges: []Gauge{{Name: "level", Bound: bound}},
		Read: func(context.Context) ([]int64, error) {
			level := levels[0]
			levels = levels[1:]
			return []int64{level}, nil
		},
	}
}

func TestSoakTellsNoiseFromGrowth(t *testing.T) {
	noisy := func(leak int64) []int64 { // the noise of a pool, and a leak in each round
		rng, levels := rand.New(rand.NewPCG(1, 2)), make([]int64, 24)
		for i := range levels {
			levels[i] = 100 + leak*int64(i) + rng.Int64N(60)
		}
		return levels
	}
	for _, c := range []struct {
		name   string
		levels []int64
		bound  int64
		leaks  bool
	}{
		{"flat", []int64{50, 50, 50, 50, 50, 50, 50, 50, 50}, 10, false},
		{"at the bound", []int64{50, 50, 50, 50, 50, 50, 60, 60, 60}, 10, false},
		{"beyond it", []int64{50, 50, 50, 50, 50, 50, 61, 61, 61}, 10, true},
		{"peaks at the end", []int64{50, 51, 50, 50, 52, 50, 900, 55, 900}, 10, false},
		{"peaks at the start", []int64{900, 50, 900, 52, 54, 56, 58, 60, 62}, 10, false},
		{"a leak behind peaks", []int64{900, 50, 900, 55, 900, 60, 65, 900, 70}, 10, true},
		{"shrinks", []int64{90, 80, 70, 60, 50, 40, 30, 20, 10}, 10, false},
		{"grows after a restart", []int64{90, 10, 20, 30, 40, 50, 60, 70, 80}, 10, true},
		{"noise", noisy(0), 25, false},
		{"a leak in noise", noisy(8), 25, true},
		{"two samples", []int64{0, 1000}, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := leaksOf(t, series(c.levels, c.bound), len(c.levels), func(int) {}); len(got) > 0 != c.leaks {
				t.Errorf("found leaks of %v in %v", got, c.levels)
			}
		})
	}
}
