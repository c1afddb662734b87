package memory

import (
	"time"

	"github.com/jonboulle/clockwork"
)

// Sleepers are the waiting Receive calls. One timer serves them all. A wake-up is a hint to look
// again. Each sleeper passes it on while messages are due, so no wake-up is lost when a sleeper
// leaves.
type sleepers struct {
	first, last *sleeper
	timer       clockwork.Timer
	armed       int64 // when the timer fires; 0 when it does not
	fired       func()
}

type sleeper struct {
	wake       chan struct{} // holds one
	prev, next *sleeper
	asleep     bool // in the list
}

// maxSleep bounds how long a jump of the wall clock goes unnoticed. Timers do not notice it.
const maxSleep = time.Minute

func newSleeper() *sleeper { return &sleeper{wake: make(chan struct{}, 1)} }

func (l *sleepers) add(s *sleeper) {
	s.prev, s.next, s.asleep = l.last, nil, true
	if l.last == nil {
		l.first = s
	} else {
		l.last.next = s
	}
	l.last = s
}

func (l *sleepers) remove(s *sleeper) {
	if s.prev == nil {
		l.first = s.next
	} else {
		s.prev.next = s.next
	}
	if s.next == nil {
		l.last = s.prev
	} else {
		s.next.prev = s.prev
	}
	s.prev, s.next, s.asleep = nil, nil, false
}

func (l *sleepers) wakeFirst() {
	if s := l.first; s != nil {
		l.remove(s)
		s.wake <- struct{}{}
	}
}

// arm makes the timer fire at t or before. A clock may jump between reading it and starting the
// timer, a fake one by hours. The timer would be late by as much, so then arm sets it again.
func (l *sleepers) arm(clock clockwork.Clock, now, t int64) {
	if now < l.armed && l.armed <= t {
		return
	}
	for range 3 { // a clock that keeps jumping ends the loop
		now = clock.Now().UnixNano()
		l.armed = min(t, after(now, maxSleep))
		l.start(clock, time.Duration(l.armed-now))
		if clock.Now().UnixNano()-now < int64(time.Millisecond) {
			return
		}
	}
}

func (l *sleepers) start(clock clockwork.Clock, d time.Duration) {
	if l.timer == nil {
		l.timer = clock.AfterFunc(d, l.fired)
	} else {
		l.timer.Reset(d)
	}
}

// disarm drops the timer. A timer belongs to the synctest bubble of its sleeper, if there is one,
// and the next sleeper may be in another.
func (l *sleepers) disarm() {
	if l.timer != nil {
		l.timer.Stop()
		l.timer, l.armed = nil, 0
	}
}

// rouseLocked wakes a sleeper when a message is due, else sets the timer for the next event. Every
// method that may make a message due calls it at its end.
func (s *store) rouseLocked(now int64) {
	switch {
	case s.sleep.first == nil:
		s.sleep.disarm()
	case s.readyLocked(now):
		s.sleep.wakeFirst()
	default:
		if t, ok := s.nextEventLocked(); ok {
			s.sleep.arm(s.clock, now, t)
		}
	}
}

// nextEventLocked is when a message may be handed out or a lease ends.
func (s *store) nextEventLocked() (t int64, ok bool) {
	if s.due.len() > 0 {
		k, _ := s.due.head()
		t, ok = max(k.when, s.paused), true
	}
	if s.leases.len() > 0 {
		if k, _ := s.leases.head(); !ok || k.when < t {
			t, ok = k.when, true
		}
	}
	return t, ok
}

// wakeUp runs when the timer fires.
func (s *store) wakeUp() {
	now := s.enter()
	defer s.mu.Unlock()
	s.sleep.armed = 0
	s.rouseLocked(now)
}
