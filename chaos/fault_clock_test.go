package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/delayq/delayq/chaos"
	"github.com/delayq/delayq/internal/judge"
	"github.com/delayq/delayq/internal/testenv"
)

// A jumper makes the clock of a venue's store jump, and notes when.
type jumper struct {
	set   func(time.Duration)
	usual time.Duration // where it belongs
	last  time.Duration // where all that was pushed is due, and all leases have ended
	made  []judge.ClockJump
}

// newJumper begins where the clock belongs.
func newJumper(usual, last time.Duration, set func(time.Duration)) *jumper {
	return &jumper{set: set, usual: usual, last: last, made: []judge.ClockJump{{Shift: int64(usual)}}}
}

// newServerJumper has a server's clock jump, and end where it never was.
func newServerJumper(t *testing.T, clock *testenv.Clock) *jumper {
	t.Helper()
	return newJumper(0, 3*time.Hour, func(to time.Duration) { clock.Set(t, to) })
}

// leap is for the test's goroutine.
func (l *jumper) jumpTo(to time.Duration) {
	l.made = append(l.made, judge.JumpTo(to, l.set))
}

// again sets the clock right for another run.
func (l *jumper) again() {
	l.set(l.usual)
	l.made = []judge.ClockJump{{Shift: int64(l.usual)}}
}

// settle is the last leap.
func (l *jumper) settle(*testing.T) judge.Window {
	l.jumpTo(l.last)
	at := l.made[len(l.made)-1]
	return judge.Window{Kind: clockJumps, Start: at.Start, End: at.End, Effect: 1}
}

const (
	clockJumps   = "clock jumps"
	jumpsByHours = clockJumps + ", up to 1h0m0s"
)

// reach is how far clocks jump: by what leases and delays last, by what they do not, and by far.
var reach = []time.Duration{10 * time.Second, 10 * time.Minute, time.Hour}

// jumps are all that.
func (l *jumper) jumps(length time.Duration) []*fault {
	all := make([]*fault, len(reach))
	for i, far := range reach {
		all[i] = l.jump(far, length)
	}
	return all
}

// jump sets the clock forward or back, sometimes twice, and right again.
func (l *jumper) jump(far, length time.Duration) *fault {
	moved := 0
	return &fault{
		Kind: chaos.Kind{Name: fmt.Sprintf("%s, up to %v", clockJumps, far), Weight: 1, For: length},
		on: func(_ *testing.T, dice *rand.Rand) {
			for moved = 0; moved == 0 || dice.IntN(3) == 0; moved++ {
				l.jumpTo(l.usual + time.Duration(dice.Int64N(int64(2*far))) - far)
			}
		},
		off: func(*testing.T) int { l.jumpTo(l.usual); return moved + 1 },
	}
}

// clocksWrong lasts all the time. It only looks whether the clocks differ as they should.
func clocksWrong(s *testenv.RedisServer, clock *testenv.Clock) *fault {
	wrong := false
	return &fault{
		Kind: chaos.Kind{Name: "clocks wrong", Weight: 1},
		on: func(t *testing.T, _ *rand.Rand) {
			client := s.Client(t, patiently)
			defer func() { _ = client.Close() }()
			at, err := client.Time(t.Context()).Result()
			must(t, err)
			wrong = clock.Skew() != 0 && (time.Until(at)-clock.Skew()).Abs() < time.Second
		},
		off: func(*testing.T) int { return count(wrong) },
	}
}
