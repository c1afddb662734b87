package memory

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
)

// filledHeap returns a heap of messages that are due after so long.
func filledHeap(waits []time.Duration) *heap {
	h := &heap{pos: &paged[uint32]{}}
	h.pos.grow(uint32(len(waits)))
	for i, w := range waits {
		h.push(key{int64(w), uint64(i)}, uint32(i))
	}
	return h
}

// survey of a heap at time 0 against a count of all messages.
func TestSurvey(t *testing.T) {
	t.Parallel()
	uniform := func(within time.Duration) func(int) time.Duration {
		return func(int) time.Duration { return 1 + rand.N(within) }
	}
	for name, tt := range map[string]struct {
		ready, scheduled int
		wait             func(int) time.Duration
		exact            int // intervals that have to be exact
	}{
		"nothing":                    {0, 0, nil, 7},
		"ready messages alone":       {50_000, 0, nil, 7},
		"few":                        {100, surveyed, uniform(30 * 24 * time.Hour), 7},
		"all within a minute":        {0, 50_000, uniform(time.Minute), 0},
		"all later":                  {0, 50_000, func(int) time.Duration { return 30 * 24 * time.Hour }, 7},
		"most later":                 {1000, 500_000, uniform(365 * 24 * time.Hour), 5},
		"few among many ready":       {200_000, 5000, uniform(2 * time.Hour), 3},
		"pushed in order":            {0, 100_000, func(i int) time.Duration { return time.Duration(1+i) * time.Second }, 3},
		"pushed in the other order":  {0, 100_000, func(i int) time.Duration { return time.Duration(100_000-i) * time.Second }, 3},
		"two bursts, one in an hour": {10, 100_000, func(i int) time.Duration { return time.Duration(1+i%2*59) * time.Minute }, 0},
	} {
		waits := make([]time.Duration, 0, tt.ready+tt.scheduled)
		want := backend.Stats{Ready: int64(tt.ready), Scheduled: int64(tt.scheduled)}
		for range tt.ready {
			waits = append(waits, -rand.N(time.Hour))
		}
		for i := range tt.scheduled {
			w := tt.wait(i)
			waits = append(waits, w)
			want.Due[backend.DueInterval(w)]++
		}
		if name != "pushed in order" {
			rand.Shuffle(len(waits), func(i, j int) { waits[i], waits[j] = waits[j], waits[i] })
		}
		got := filledHeap(waits).survey(0)
		if got.Ready != want.Ready || got.Scheduled != want.Scheduled || got.DueEstimated != (tt.exact < len(want.Due)) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
		sum := int64(0)
		for i, n := range got.Due {
			sum += n
			// A sample of 4,096 is off by more than 5 % of all messages in one of many billion runs.
			if off := max(n-want.Due[i], want.Due[i]-n); i < tt.exact && off > 0 || off > int64(len(waits))/20 {
				t.Errorf("%s: interval %d has %d messages, want %d", name, i, n, want.Due[i])
			}
		}
		if sum != want.Scheduled {
			t.Errorf("%s: %v adds up to %d of %d", name, got.Due, sum, want.Scheduled)
		}
	}
}

// BenchmarkSurvey counts a million messages, of which some thousand are due soon.
func BenchmarkSurvey(b *testing.B) {
	waits := make([]time.Duration, 1_000_000)
	for i := range waits {
		waits[i] = 1 + rand.N(30*24*time.Hour)
	}
	h := filledHeap(waits)
	b.ReportAllocs()
	for b.Loop() {
		h.survey(0)
	}
}
