package demo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/delayq/delayq"
)

// timeouts is a scene of requests that end by themselves without a response in time. Each request
// pushes a message for its timeout, and a response cancels it.
type timeouts struct {
	title     string
	scale     float64
	noun      string
	count     int
	every     time.Duration         // from one request to the next
	after     time.Duration         // the timeout
	responses map[int]time.Duration // to the request of that number, from its beginning on

	opened, responded, tooLate, fired string // what to say then
}

var unpaidOrders = timeouts{
	title: "Orders that are not paid within 30 minutes cancel themselves",
	scale: 600,
	noun:  "order", count: 16, every: time.Minute, after: 30 * time.Minute,
	responses: map[int]time.Duration{
		2: 4 * time.Minute, 3: 11 * time.Minute, 5: 28 * time.Minute, 7: 8 * time.Minute,
		8: 20 * time.Minute, 10: 15 * time.Minute, 12: 3 * time.Minute, 14: 25 * time.Minute,
		15: 32 * time.Minute,
	},
	opened:    "placed, to be paid within 30m",
	responded: "paid in time: its timeout is cancelled",
	tooLate:   "paid too late: the money goes back",
	fired:     "not paid: the order cancels itself",
}

var slowMerchants = timeouts{
	title: "A merchant has 5 minutes to accept an order",
	scale: 120,
	noun:  "meal", count: 8, every: 20 * time.Second, after: 5 * time.Minute,
	responses: map[int]time.Duration{
		1: 40 * time.Second, 2: 2 * time.Minute, 4: 280 * time.Second,
		5: 90 * time.Second, 7: 3 * time.Minute,
	},
	opened:    "sent to the merchant, who has 5m",
	responded: "accepted: its timeout is cancelled",
	tooLate:   "accepted too late: the order is gone",
	fired:     "no answer: the order is declined and the guest told",
}

var missingReviews = timeouts{
	title: "A review falls back to its default after 7 days",
	scale: 2 * 24 * 60 * 60,
	noun:  "review", count: 6, every: 6 * time.Hour, after: 7 * day,
	responses: map[int]time.Duration{
		1: 2 * day, 4: 5*day + 7*time.Hour, 6: 12 * time.Hour,
	},
	opened:    "asked for, open for 7d",
	responded: "written: its timeout is cancelled",
	tooLate:   "written too late: the default stands",
	fired:     "nobody wrote one: five stars by default",
}

func (t *timeouts) scene() scene { return scene{title: t.title, scale: t.scale, play: t.play} }

func (t *timeouts) play(ctx context.Context, s *stage) error {
	p := &timeoutPlay{timeouts: t, stage: s, settled: make(map[string]bool)}
	return s.serve(ctx, s.attend(p.timeout), func(ctx context.Context) error {
		return s.perform(ctx, p.cues())
	})
}

// timeoutPlay is one performance of the scene.
type timeoutPlay struct {
	*timeouts
	*stage

	mu      sync.Mutex
	settled map[string]bool // responded to, but not cancelled, since the backend cannot
}

func (p *timeoutPlay) cues() (cues []cue) {
	for i := 1; i <= p.count; i++ {
		id := fmt.Sprintf("%s%s-%02d", p.tag, p.noun, i)
		opens := time.Duration(i-1) * p.every
		cues = append(cues, cue{opens, func(ctx context.Context) error {
			p.note(calm, id, p.opened)
			return p.push(ctx, id, p.noun+" timeout", p.after)
		}})
		if after, ok := p.responses[i]; ok {
			cues = append(cues, cue{opens + after, func(ctx context.Context) error { return p.respond(ctx, id) }})
		}
	}
	return cues
}

func (p *timeoutPlay) respond(ctx context.Context, id string) error {
	err := p.queue.Cancel(ctx, p.names.id(id))
	switch {
	case err == nil:
		p.note(good, id, p.responded)
		if p.ledger.cancelled(id) {
			p.say.broken(p.name(id), "cancelled although a worker has it")
		}
	case errors.Is(err, delayq.ErrNotFound), errors.Is(err, delayq.ErrInFlight):
		p.note(trouble, id, p.tooLate)
	case errors.Is(err, delayq.ErrUnsupported):
		p.settle(id)
	default:
		return err
	}
	return nil
}

// settle notes a response that a timeout will find, on a backend that cannot cancel.
func (p *timeoutPlay) settle(id string) {
	p.mu.Lock()
	p.settled[id] = true
	p.mu.Unlock()
	p.note(good, id, "answered in time; this backend cannot cancel, so the timeout will find it done")
}

func (p *timeoutPlay) timeout(_ *delayq.Delivery, name string, late time.Duration) error {
	p.mu.Lock()
	settled := p.settled[name]
	p.mu.Unlock()
	if settled {
		p.note(calm, name, "timeout finds it answered: nothing to do"+lateText(late))
	} else {
		p.note(stopped, name, p.fired+lateText(late))
	}
	return nil
}

func lateText(late time.Duration) string {
	return fmt.Sprintf(" (%s late)", millis(&late))
}
