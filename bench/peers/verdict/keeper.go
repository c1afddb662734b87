package verdict

import (
	"sync"
	"time"
)

// A keeper gives a lease the length that a worker asks for where the peer has one length for all: it renews the lease, as a worker
// does that needs longer, and stops early enough for the store to end it in time.
type keeper struct {
	every time.Duration // the store's length
	renew func() error

	mu    sync.Mutex
	until time.Time
	timer *time.Timer
	ended bool
}

// keep begins with a lease that the store has just given.
func keep(every, lease time.Duration, renew func() error) *keeper {
	k := &keeper{every: every, renew: renew, until: time.Now().Add(max(lease, every))}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.plan()
	return k
}

// plan sets the next renewal. The last one is one length before the end.
func (k *keeper) plan() {
	last := time.Until(k.until) - k.every
	if last <= 0 || k.ended {
		return
	}
	k.timer = time.AfterFunc(min(last, k.every/4), k.again)
}

func (k *keeper) again() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.ended && k.renew() == nil {
		k.plan()
	}
}

// extend moves the end, though not to before the store's length from now.
func (k *keeper) extend(lease time.Duration) (time.Time, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.renew(); err != nil {
		return time.Time{}, err
	}
	k.until = time.Now().Add(max(lease, k.every))
	if k.timer != nil {
		k.timer.Stop()
	}
	k.plan()
	return k.until, nil
}

// stop ends the renewals. None is on its way when it returns.
func (k *keeper) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	if k.timer != nil {
		k.timer.Stop()
	}
}
