package delayq

import "time"

const (
	// horizon is how much work is claimed ahead: more than a round trip takes, and less than
	// anybody would notice who waits for the messages elsewhere.
	horizon = 5 * time.Millisecond

	// holdAtMost is how long a message waits for a worker before others may have it.
	holdAtMost = 100 * time.Millisecond

	// A pace is measured over that many messages for each worker: fewer may have finished together
	// and say little. It is no longer known after longestMeasure.
	laps           = 4
	longestMeasure = time.Second

	// restAfterHold is how long nothing is claimed ahead once messages had to be given back.
	restAfterHold = time.Second

	prefetchBytes = 8 << 20
)

// A prefetch is what a consumer has claimed ahead and no worker has taken, and how much that may be.
type prefetch struct {
	limit   int // of messages
	workers int
	hold    time.Duration
	horizon time.Duration

	waiting []*Delivery // in the order claimed
	bytes   int         // of what waits
	mean    int         // bytes of a message that had to wait, as last seen

	target   int  // messages that the workers finish within the horizon
	plenty   bool // the last claim got most of what it asked for
	finished int  // messages since the measurement began
	began    time.Time
	rest     time.Time // until then nothing is claimed ahead
}

func newPrefetch(o *consumeOptions, lease time.Duration, now time.Time) prefetch {
	hold := min(holdAtMost, lease/renewals)
	return prefetch{limit: o.prefetch, workers: o.workers, hold: hold, horizon: min(horizon, hold/4), began: now}
}

// measure sets the target by the pace of the workers. It falls as soon as they are seen to be
// slower, and rises when each has had its share in the measurement.
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
// claims are large, and none where the store has little that is due.
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

// add keeps messages, and returns those that are too many bytes.
func (p *prefetch) add(ds []*Delivery) (surplus []*Delivery) {
	if len(ds) == 0 {
		return nil
	}
	total := 0
	for _, d := range ds {
		n := d.weight()
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

// next takes the first message that waits, unless it has waited for so long that its lease may end
// before it is renewed.
func (p *prefetch) next(now time.Time) *Delivery {
	if p.left(now) <= 0 {
		return nil
	}
	d := p.waiting[0]
	p.waiting[0] = nil
	p.waiting = p.waiting[1:]
	p.bytes -= d.weight()
	return d
}

// left is for how long the first message may still wait.
func (p *prefetch) left(now time.Time) time.Duration {
	waited := p.waiting[0].heldFor(now)
	if waited < 0 { // the clock was set back: nobody knows
		return 0
	}
	return p.hold - waited
}

// takeAll takes what waits.
func (p *prefetch) takeAll() (ds []*Delivery) {
	ds, p.waiting, p.bytes = p.waiting, nil, 0
	return ds
}

// stall ends claiming ahead, for a while.
func (p *prefetch) stall(now time.Time) {
	p.target, p.finished, p.began, p.rest = 0, 0, now, now.Add(restAfterHold)
}

func (d *Delivery) weight() int { return len(d.Body) + headerBytes(d.Headers) }

// heldFor is how long ago the message was taken, while its lease has not been renewed.
func (d *Delivery) heldFor(now time.Time) time.Duration {
	return time.Duration(now.UnixNano() - d.kept.Load() + int64(d.q.lease))
}
