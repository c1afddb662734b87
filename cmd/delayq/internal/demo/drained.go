package demo

import (
	"context"
	"time"
)

// watchFor is how long a cancelled message is watched after its time, for whether it fires.
const watchFor = 100 * time.Millisecond

// wait returns when no message is open and the time of the cancelled ones has passed, or when
// nothing has happened for as long as patience lasts.
func (l *ledger) wait(ctx context.Context, patience time.Duration) error {
	for {
		open, until := l.progress(patience)
		if open == 0 {
			l.mu.Lock()
			quiet := l.cancelledDue.Add(watchFor) // the last cancelled message would have fired
			l.mu.Unlock()
			return sleepUntil(ctx, quiet)
		}
		left := time.Until(until)
		if left <= 0 {
			return nil
		}
		if err := l.waitDrained(ctx, left); err != nil {
			return err
		}
	}
}

// progress returns how many messages are open and until when they are waited for.
func (l *ledger) progress(patience time.Duration) (open int, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open, later(l.lastDue, l.lastProgress).Add(patience)
}

func (l *ledger) waitDrained(ctx context.Context, limit time.Duration) error {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-l.drained:
	case <-t.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

func sleepUntil(ctx context.Context, at time.Time) error {
	t := time.NewTimer(time.Until(at))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
