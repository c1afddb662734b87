package consumer

import "time"

const (
	// leastHorizon is how much work is claimed ahead: too little for another worker that waits for the
	// messages to notice. Where a claim takes long, it is claimsAhead times that, so that workers
	// have messages while it is under way, and a quarter of the hold at most.
	leastHorizon = 5 * time.Millisecond
	claimsAhead  = 4

	// holdAtMost is how long a message waits for a worker before it is given back.
	holdAtMost = 100 * time.Millisecond

	// A pace is measured over laps messages for each worker: fewer may have finished together and
	// say little. After longestMeasure it is taken from what there is.
	laps           = 4
	longestMeasure = time.Second

	// restAfterHold is how long nothing is claimed ahead once messages had to be given back.
	restAfterHold = time.Second

	prefetchBytes = 8 << 20
)

// A prefetch holds the messages that a consumer has claimed ahead and no worker has taken, and says
// how many more may be.
type prefetch struct {
	limit   int // of messages
	workers int
	hold    time.Duration
	horizon time.Duration

	waiting []Delivery // in the order claimed
	bytes   int        // of the messages that wait
	mean    int        // bytes of a message in the latest claim of which some had to wait

	target   int  // messages that the workers finish within the horizon
	plenty   bool // the latest claim got most of the messages that it asked for
	finished int  // messages since the measurement began
	began    time.Time
	rest     time.Time // until then nothing is claimed ahead
}

func newPrefetch(limit, workers int, lease time.Duration, now time.Time) prefetch {
	hold := min(holdAtMost, lease/renewals)
	return prefetch{limit: limit, workers: workers, hold: hold, horizon: min(leastHorizon, hold/4), began: now}
}

// claimed notes a claim that asked for messages and got some. One that got most of what it asked for
// did not wait for them to be due.
func (p *prefetch) claimed(got, asked int, took time.Duration) {
	was := p.plenty
	p.plenty = 2*got >= asked
	if was && p.plenty {
		p.horizon = min(max(leastHorizon, claimsAhead*took), p.hold/4)
	}
}

// measure sets the target by the pace of the workers. It falls as soon as the workers are seen to
// be slower, and rises when each has had its share in the measurement.
func (p *prefetch) measure(now time.Time) {
	took := now.Sub(p.began)
	if p.limit == 0 || took < p.horizon {
		return
	}
	p.target = min(p.target, p.withinHorizon(p.finished+p.workers, took))
	if p.finished < laps*p.workers && took < longestMeasure {
		return
	}
	p.target = min(p.withinHorizon(p.finished, took), p.limit)
	if p.target < 2 || now.Before(p.rest) {
		p.target = 0
	}
	p.finished, p.began = 0, now
}

func (p *prefetch) withinHorizon(n int, took time.Duration) int {
	return int(float64(n) * float64(p.horizon) / float64(took))
}

// room is how many messages to claim ahead: none while more than half of the target waits, so that
// claims are large, and none while the store has little that is due.
func (p *prefetch) room() int {
	if !p.plenty || 2*len(p.waiting) > p.target {
		return 0
	}
	room := p.target - len(p.waiting)
	if p.mean > 0 {
		room = min(room, (prefetchBytes-p.bytes)/p.mean)
	}
	return room
}

// add keeps messages and returns the surplus, from the first that exceeds prefetchBytes on.
func (p *prefetch) add(ds []Delivery) (surplus []Delivery) {
	if len(ds) == 0 {
		return nil
	}
	total := 0
	for _, d := range ds {
		n := d.Size()
		if total += n; len(surplus) == 0 && p.bytes+n <= prefetchBytes {
			p.waiting = append(p.waiting, d)
			p.bytes += n
		} else {
			surplus = append(surplus, d)
		}
	}
	p.mean = total / len(ds)
	return surplus
}

// next takes the first message that waits, and nil when it has waited too long: its lease may end
// before it is renewed.
func (p *prefetch) next(now time.Time) Delivery {
	if p.left(now) <= 0 {
		return nil
	}
	d := p.waiting[0]
	p.waiting[0] = nil
	p.waiting = p.waiting[1:]
	p.bytes -= d.Size()
	return d
}

// left is for how long the first message may still wait; 0 when the clock was set back, since
// nothing is known then.
func (p *prefetch) left(now time.Time) time.Duration {
	waited := p.waiting[0].Lease().Age(now)
	if waited < 0 {
		return 0
	}
	return p.hold - waited
}

func (p *prefetch) takeAll() (ds []Delivery) {
	ds, p.waiting, p.bytes = p.waiting, nil, 0
	return ds
}

// stall ends claiming ahead for a while.
func (p *prefetch) stall(now time.Time) {
	p.target, p.finished, p.began, p.rest = 0, 0, now, now.Add(restAfterHold)
}
