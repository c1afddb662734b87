package ids

import (
	"bytes"
	"crypto/rand"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
)

// Stores that sort by id take its order for the order of the pushes.
func TestIDsRise(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	ms := func(n int) time.Time { return start.Add(time.Duration(n) * time.Millisecond) }
	for name, clock := range map[string][]time.Time{
		"time stands still":          {ms(0), ms(0), ms(0)},
		"time passes":                {ms(0), ms(1), ms(2)},
		"clock is set back":          {ms(5), ms(0), ms(5), ms(5), ms(1), ms(6)},
		"clock is set back to 1960":  {ms(0), time.Date(1960, 1, 1, 0, 0, 0, 0, time.UTC), ms(0)},
		"a late goroutine's reading": {ms(1), ms(0), ms(1)},
	} {
		for range 100 { // the bits are random: one run could be right by chance
			s := source{entropy: ulid.Monotonic(rand.Reader, 0)}
			var last ulid.ULID
			for i, now := range clock {
				id := s.next(now)
				if id.Compare(last) <= 0 {
					t.Fatalf("%s: id %d is %v, after %v", name, i, id, last)
				}
				last = id
			}
		}
	}
}

func TestIDsRiseBeyondTheirBits(t *testing.T) {
	t.Parallel()
	bits := append(bytes.Repeat([]byte{0xff}, 10), bytes.Repeat([]byte{1}, 10)...)
	s := source{entropy: ulid.Monotonic(bytes.NewReader(bits), 1)}
	now := time.UnixMilli(1000)
	first, second, third := s.next(now), s.next(now), s.next(now)
	if second.Compare(first) <= 0 || third.Compare(second) <= 0 {
		t.Errorf("ids %v, %v, %v do not rise", first, second, third)
	}
	if second.Time() != 1001 {
		t.Errorf("time of the second is %d, want 1001", second.Time())
	}
}

func TestIDsRiseInEachGoroutine(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			last := ""
			for range 2000 {
				id := New()
				if id <= last {
					t.Errorf("id %s after %s", id, last)
				}
				last = id
			}
		})
	}
	all.Wait()
}
