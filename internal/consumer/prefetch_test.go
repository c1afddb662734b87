package consumer

import (
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/lease"
)

// claimed is a delivery of a size that was received at a time.
type claimed struct {
	Delivery
	size  int
	lease lease.Lease
}

func claim(size int, at time.Time) *claimed {
	d := &claimed{size: size}
	d.lease.Take(backend.Lease{}, time.Minute, at, at.Add(time.Minute))
	return d
}

func (d *claimed) Size() int           { return d.size }
func (d *claimed) Lease() *lease.Lease { return &d.lease }

var epoch = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// paced returns the prefetch of 10 workers that finished n messages in that time.
func paced(limit, n int, took time.Duration) *prefetch {
	p := newPrefetch(limit, 10, time.Minute, epoch)
	p.plenty = true
	p.finished = n
	p.measure(epoch.Add(took))
	return &p
}

func TestPrefetchTarget(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		limit, finished int
		took            time.Duration
		want            int
	}{
		"10,000 a second":               {1000, 1000, 100 * time.Millisecond, 50},
		"as many as the limit":          {40, 1000, 100 * time.Millisecond, 40},
		"nothing may be claimed ahead":  {0, 1000, 100 * time.Millisecond, 0},
		"slow handlers":                 {1000, 30, time.Second, 0},
		"few messages say little yet":   {1000, 39, 50 * time.Millisecond, 0},
		"as many as are measured":       {1000, 40, 50 * time.Millisecond, 4},
		"few messages after a second":   {1000, 39, time.Second, 0},
		"no measure within the horizon": {1000, 1000, leastHorizon - 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := paced(tt.limit, tt.finished, tt.took).room(); got != tt.want {
				t.Errorf("room for %d messages, want %d", got, tt.want)
			}
		})
	}
}

func TestPrefetchTargetFallsBeforeTheMeasurementEnds(t *testing.T) {
	t.Parallel()
	p := paced(1000, 1000, 100*time.Millisecond)
	p.measure(epoch.Add(200 * time.Millisecond)) // no message in another 100 ms; each worker may have one
	if p.target != 0 {
		t.Errorf("target %d, want 0", p.target)
	}
}

func TestPrefetchRestsAfterAStall(t *testing.T) {
	t.Parallel()
	p := paced(1000, 1000, 100*time.Millisecond)
	now := epoch.Add(time.Minute)
	p.stall(now)
	for wait, want := range map[time.Duration]int{restAfterHold - 1: 0, restAfterHold: 50} {
		p.began, p.finished = now.Add(wait-100*time.Millisecond), 1000
		q := *p
		q.measure(now.Add(wait))
		if q.target != want {
			t.Errorf("%v after a stall the target is %d, want %d", wait, q.target, want)
		}
	}
}

func TestPrefetchRoom(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*prefetch)
		want   int
	}{
		"nothing waits":                {func(*prefetch) {}, 50},
		"half waits":                   {func(p *prefetch) { p.waiting = make([]Delivery, 25) }, 25},
		"more than half waits":         {func(p *prefetch) { p.waiting = make([]Delivery, 26) }, 0},
		"the store has little":         {func(p *prefetch) { p.plenty = false }, 0},
		"large messages":               {func(p *prefetch) { p.mean = 1 << 20 }, 8},
		"large messages wait":          {func(p *prefetch) { p.mean, p.bytes = 1<<20, 6<<20 }, 2},
		"messages larger than allowed": {func(p *prefetch) { p.mean = 9 << 20 }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := paced(1000, 1000, 100*time.Millisecond)
			tt.change(p)
			if got := p.room(); got != tt.want {
				t.Errorf("room for %d messages, want %d", got, tt.want)
			}
		})
	}
}

// After the first message that is too much, the rest is surplus: it keeps its order in the store.
func TestPrefetchKeepsUpToItsBytes(t *testing.T) {
	t.Parallel()
	p := paced(1000, 1000, 100*time.Millisecond)
	sizes := []int{3 << 20, 4 << 20, 2 << 20, 1}
	var ds []Delivery
	for _, size := range sizes {
		ds = append(ds, claim(size, epoch))
	}
	surplus := p.add(ds)
	if len(p.waiting) != 2 || p.bytes != 7<<20 || len(surplus) != 2 || surplus[0] != ds[2] || surplus[1] != ds[3] {
		t.Errorf("%d messages of %d bytes wait, surplus %d", len(p.waiting), p.bytes, len(surplus))
	}
	if want := (9<<20 + 1) / 4; p.mean != want {
		t.Errorf("mean %d, want %d", p.mean, want)
	}
	if p.add(nil) != nil || p.mean == 0 {
		t.Error("a claim of which nothing waits says nothing about sizes")
	}
	if d := p.next(epoch); d != ds[0] || p.bytes != 4<<20 {
		t.Errorf("%d bytes wait after the first is taken", p.bytes)
	}
	if all := p.takeAll(); len(all) != 1 || all[0] != ds[1] || p.bytes != 0 || p.waiting != nil {
		t.Errorf("took %d messages, %d bytes left", len(all), p.bytes)
	}
}

func TestPrefetchHoldsMessagesForALimitedTime(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		after time.Duration
		taken bool
	}{
		"at once":             {0, true},
		"just in time":        {holdAtMost - 1, true},
		"too late":            {holdAtMost, false},
		"clock was set back":  {-1, false},
		"clock was set ahead": {time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := paced(1000, 1000, 100*time.Millisecond)
			p.add([]Delivery{claim(1, epoch)})
			if got := p.next(epoch.Add(tt.after)) != nil; got != tt.taken {
				t.Errorf("taken: %v, want %v", got, tt.taken)
			}
		})
	}
}

func TestPrefetchHoldsLessOfAShortLease(t *testing.T) {
	t.Parallel()
	p := newPrefetch(10, 2, 30*time.Millisecond, epoch)
	if p.hold != 10*time.Millisecond || p.horizon != 2500*time.Microsecond {
		t.Errorf("hold %v, horizon %v, want a third of the lease and a quarter of that", p.hold, p.horizon)
	}
}

func TestPrefetchHorizonFollowsTheClaims(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before, got int // messages of two claims, of 100 each
		took        time.Duration
		want        time.Duration
	}{
		"a fast claim":                 {100, 100, time.Millisecond, leastHorizon},
		"a slow claim":                 {100, 100, 4 * time.Millisecond, 16 * time.Millisecond},
		"a very slow claim":            {100, 100, time.Second, 25 * time.Millisecond},
		"a claim after few messages":   {10, 100, 4 * time.Millisecond, leastHorizon},
		"a claim that found few":       {100, 10, 4 * time.Millisecond, leastHorizon},
		"a clock that was turned back": {100, 100, -time.Second, leastHorizon},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := paced(1000, 1000, 100*time.Millisecond)
			p.claimed(tt.before, 100, 0)
			p.claimed(tt.got, 100, tt.took)
			if p.horizon != tt.want {
				t.Errorf("horizon %v, want %v", p.horizon, tt.want)
			}
		})
	}
}
