package handle

import (
	"context"
	"time"
)

// idle waits until a Receive arrives. When none has for a while, it maintains the queue.
func (q *Queue) idle() {
	if q.Maintain == nil {
		q.awaitArrival(nil)
		return
	}
	t := q.clock.NewTimer(q.IdleFor)
	defer t.Stop()
	if !q.awaitArrival(t.Chan()) {
		return
	}
	for q.maintainOnce() {
	}
}

// maintainOnce reports whether there is more work to do at once. Else it sleeps until there is.
func (q *Queue) maintainOnce() (more bool) {
	q.mu.Lock()
	q.soonest = time.Time{}
	q.mu.Unlock()
	c, err := q.Maintain(context.Background())
	if err != nil && q.fetching.Err() == nil {
		q.log.Warn("delayq: maintaining the queue failed; it is tried again at the next interval", "err", err)
	}
	if !c.Next.IsZero() && !c.Next.After(c.Now) {
		q.mu.Lock()
		defer q.mu.Unlock()
		return len(q.waiting) == 0 && q.fetching.Err() == nil
	}
	q.sleep(c, q.arrived)
	return false
}

// awaitArrival waits for a Receive, the end or the timer, and reports whether it was the timer.
func (q *Queue) awaitArrival(timer <-chan time.Time) bool {
	select {
	case <-timer:
		return true
	case <-q.arrived:
	case <-q.fetching.Done():
	}
	return false
}
