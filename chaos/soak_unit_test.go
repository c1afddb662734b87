package chaos_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/chaos"
	"github.com/delayq/delayq/internal/testenv"
)

// soakRounds is how many samples these tests take.
const soakRounds = 9

// watched samples real gauges, while something is done before each sample, and returns the names of those that leak.
func watched(t *testing.T, m chaos.Meter, before func(round int)) []string {
	t.Helper()
	w := &chaos.Watch{Backend: "none", Meters: []chaos.Meter{m}}
	for i := range soakRounds {
		before(i)
		must(t, w.Sample(t.Context(), chaos.Round{Messages: 1, Load: time.Second}))
	}
	return leaking(w)
}

func leaking(w *chaos.Watch) []string {
	var names []string
	for _, g := range w.Leaks() {
		names = append(names, g.Name)
	}
	return names
}

func mustLeak(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("found leaks of %v, want %v", got, want)
	}
}

func TestSoakFindsGoroutines(t *testing.T) {
	end := make(chan struct{})
	defer close(end)
	mustLeak(t, watched(t, chaos.ProcessMeter(), func(int) {
		for range 5 {
			go func() { <-end }()
		}
	}), "goroutines")
}

func TestSoakFindsFiles(t *testing.T) {
	var open []*os.File
	defer func() {
		for _, f := range open {
			_ = f.Close()
		}
	}()
	mustLeak(t, watched(t, chaos.ProcessMeter(), func(int) {
		for range 3 {
			f, err := os.Open(os.DevNull)
			must(t, err)
			open = append(open, f)
		}
	}), "files")
}

func TestSoakFindsHeap(t *testing.T) {
	kept := make(map[int][]byte)
	mustLeak(t, watched(t, chaos.ProcessMeter(), func(round int) { kept[round] = make([]byte, 1<<20) }), "heap")
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
	mustLeak(t, watched(t, chaos.RedisMeter(c), set(1)), "keys")
	must(t, c.FlushAll(t.Context()).Err())
	mustLeak(t, watched(t, chaos.RedisMeter(c), set(1<<20)), "store memory", "keys")
	mustLeak(t, watched(t, chaos.RedisMeter(c), func(int) {})) // what was left is no growth
}

// TestSoakForgivesWhatEnds does what a leak does, and cleans up.
func TestSoakForgivesWhatEnds(t *testing.T) {
	mustLeak(t, watched(t, chaos.ProcessMeter(), func(int) {
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
		chaos.Calm(ctx, 20*time.Millisecond)
	}))
}

// series is a meter that reads made-up levels.
func series(levels []int64, bound int64) chaos.Meter {
	return chaos.Meter{
		Gauges: []chaos.Gauge{{Name: "level", Bound: bound}},
		Read: func(context.Context) ([]int64, error) {
			level := levels[0]
			levels = levels[1:]
			return []int64{level}, nil
		},
	}
}

func TestSoakTellsNoiseFromGrowth(t *testing.T) {
	for _, c := range []struct {
		name   string
		levels []int64
		leaks  bool
	}{
		{"flat", []int64{50, 50, 50, 50, 50, 50, 50, 50, 50}, false},
		{"at the bound", []int64{50, 50, 50, 50, 50, 50, 60, 60, 60}, false},
		{"beyond it", []int64{50, 50, 50, 50, 50, 50, 61, 61, 61}, true},
		{"peaks at the end", []int64{50, 51, 50, 50, 52, 50, 900, 55, 900}, false},
		{"peaks at the start", []int64{900, 50, 900, 52, 54, 56, 58, 60, 62}, false},
		{"a leak behind peaks", []int64{900, 50, 900, 55, 900, 60, 65, 900, 70}, true},
		{"shrinks", []int64{90, 80, 70, 60, 50, 40, 30, 20, 10}, false},
		{"grows after a restart", []int64{90, 10, 20, 30, 40, 50, 60, 70, 80}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := watched(t, series(c.levels, 10), func(int) {})
			if len(w) > 0 != c.leaks {
				t.Errorf("found leaks of %v in %v", w, c.levels)
			}
		})
	}
}

// TestSoakFindsLeaksInNoise has the noise of a pool on top of a leak of one goroutine a fault, and without.
func TestSoakFindsLeaksInNoise(t *testing.T) {
	const rounds, faults = 24, 8
	dice := rand.New(rand.NewPCG(1, 2))
	for _, leak := range []int64{0, faults} {
		levels := make([]int64, rounds)
		for i := range levels {
			levels[i] = 100 + leak*int64(i) + dice.Int64N(60)
		}
		w := &chaos.Watch{Meters: []chaos.Meter{series(levels, 25)}}
		for range rounds {
			must(t, w.Sample(t.Context(), chaos.Round{}))
		}
		if got := len(w.Leaks()) > 0; got != (leak > 0) {
			t.Errorf("leaking %d a round: found is %v, %v", leak, got, w.Growths())
		}
	}
}

func TestSoakJudgesNoTwoSamples(t *testing.T) {
	w := &chaos.Watch{Meters: []chaos.Meter{series([]int64{0, 1000}, 0)}}
	for range 2 {
		must(t, w.Sample(t.Context(), chaos.Round{}))
	}
	if g := w.Growths(); g != nil {
		t.Errorf("judged %d samples: %v", w.Rounds(), g)
	}
}

func TestSoakReadsDepth(t *testing.T) {
	v := memoryVenue(t)
	b, err := v.opens[0](t.Context())
	must(t, err)
	q, err := b.Open(t.Context(), queueName, quiet())
	must(t, err)
	defer func() { _ = q.Close() }()
	m, pushed := chaos.DepthMeter(b, queueName), 0
	mustLeak(t, watched(t, m, func(int) {
		pushed++
		must(t, firstOf(q.Schedule(t.Context(), []backend.Message{{ID: strconv.Itoa(pushed), Delay: time.Hour}})))
	}), "depth")
}
