package dashboard

import (
	"context"
	"sync"
	"time"

	"github.com/delayq/delayq"
)

const (
	pollEvery   = 2 * time.Second
	pollLimit   = 5 * time.Second  // for the store to count
	pollUnseen  = 20 * time.Second // polling goes on for that long when nobody asks any more
	keepUnseen  = 10 * time.Minute // and what was polled is kept for that long
	keptSamples = 300              // ten minutes
)

// sample is what the store said of a queue at one moment.
type sample struct {
	at    time.Time
	stats delayq.Stats
	err   error
}

// polls has one poller for each queue that is shown, for all browsers.
type polls struct {
	handles *handles
	ctx     context.Context //nolint:containedctx // it ends all pollers
	running sync.WaitGroup

	mu     sync.Mutex
	pollOf map[string]*poll
	closed bool
}

// poll counts one queue again and again while somebody asks.
type poll struct {
	samples []sample // the newest last
	asked   time.Time
	running bool
	next    chan struct{} // closed at the next sample
}

func newPolls(ctx context.Context, hs *handles) *polls {
	return &polls{handles: hs, ctx: ctx, pollOf: make(map[string]*poll)}
}

// of returns the samples of a queue, and a channel that is closed when there are more. It makes
// sure that the queue is polled for some time.
func (ps *polls) of(name string) ([]sample, <-chan struct{}) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.forgetLocked()
	p := ps.pollOf[name]
	if p == nil {
		p = &poll{next: make(chan struct{})}
		ps.pollOf[name] = p
	}
	p.asked = time.Now()
	if !p.running && !ps.closed {
		p.running = true
		ps.running.Go(func() { ps.run(name, p) })
	}
	return p.freshLocked(), p.next
}

// freshLocked leaves samples out that are older than a gap in the polling: the figures on a page are
// never of long ago.
func (p *poll) freshLocked() []sample {
	if n := len(p.samples); n > 0 && time.Since(p.samples[n-1].at) > 2*pollEvery+pollLimit {
		return nil
	}
	return p.samples
}

// wait is of, and waits for a first sample until ctx ends.
func (ps *polls) wait(ctx context.Context, name string) []sample {
	samples, next := ps.of(name)
	if len(samples) > 0 {
		return samples
	}
	select {
	case <-next:
	case <-ctx.Done():
	}
	samples, _ = ps.of(name)
	return samples
}

func (ps *polls) run(name string, p *poll) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for ps.ctx.Err() == nil {
		s := ps.count(name)
		ps.mu.Lock()
		p.samples = append(p.samples, s)
		if over := len(p.samples) - keptSamples; over > 0 {
			p.samples = append([]sample(nil), p.samples[over:]...) // readers keep the old ones
		}
		close(p.next)
		p.next = make(chan struct{})
		if time.Since(p.asked) > pollUnseen {
			p.running = false
			ps.mu.Unlock()
			return
		}
		ps.mu.Unlock()
		select {
		case <-tick.C:
		case <-ps.ctx.Done():
		}
	}
}

func (ps *polls) count(name string) sample {
	ctx, cancel := context.WithTimeout(ps.ctx, pollLimit)
	defer cancel()
	q, release, err := ps.handles.use(ctx, name)
	if err != nil {
		return sample{at: time.Now(), err: err}
	}
	defer release()
	stats, err := q.Stats(ctx)
	return sample{at: time.Now(), stats: stats, err: err}
}

func (ps *polls) forgetLocked() {
	for name, p := range ps.pollOf {
		if !p.running && time.Since(p.asked) > keepUnseen {
			delete(ps.pollOf, name)
		}
	}
}

func (ps *polls) close() {
	ps.mu.Lock()
	ps.closed = true
	ps.mu.Unlock()
	ps.running.Wait()
}
