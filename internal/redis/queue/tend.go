package queue

import (
	"context"
	"time"
)

// idle waits until somebody waits for a message. Meanwhile it tends the queue, whenever nobody has
// waited for a while after something became due.
func (q *Queue) idle() {
	if q.Tend == nil {
		q.rest(nil)
		return
	}
	t := q.clock.NewTimer(q.Spare)
	defer t.Stop()
	if !q.rest(t.Chan()) {
		return
	}
	for q.tendOnce() {
	}
}

// tendOnce reports whether there is more to do at once. Else it sleeps until there is.
func (q *Queue) tendOnce() (more bool) {
	q.forgetSoonest()
	asked := q.clock.Now()
	c, err := q.Tend(context.Background())
	if err != nil && q.fetching.Err() == nil {
		q.log.Warn("delayq: tending the queue failed; it is tried again at the next interval", "err", err)
	}
	if q.Clock == nil {
		asked = q.clock.Now()
	}
	if !c.Next.IsZero() && !c.Next.After(c.Now) {
		return q.undisturbed()
	}
	q.sleepUntil(c, asked, q.arrived)
	return false
}

// undisturbed reports whether still nobody waits and the handle is open.
func (q *Queue) undisturbed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) == 0 && q.fetching.Err() == nil
}

// rest waits for a worker, the end or the timer, and reports whether it was the timer.
func (q *Queue) rest(timer <-chan time.Time) bool {
	select {
	case <-timer:
		return true
	case <-q.arrived:
	case <-q.fetching.Done():
	}
	return false
}

func (q *Queue) forgetSoonest() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.soonest = time.Time{}
}
