package judge_test

import (
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/delayq/delayq/internal/judge"
)

// leaps has the store's clock be an hour ahead for so many ms of a tale.
func leaps(from, to int64) []judge.ClockJump {
	return []judge.ClockJump{
		{Start: epoch + from*msec, End: epoch + from*msec, Shift: int64(time.Hour)},
		{Start: epoch + to*msec, End: epoch + to*msec},
	}
}

const anHour = int64(time.Hour) / msec

// ahead has the last hand-out be one by the clock that is an hour ahead.
func (s tale) ahead() tale {
	it := &s[len(s)-1].Items[0]
	it.Until += anHour * msec
	return s
}

// claimedAt has the claim of the last hand-out be older than the call.
func (s tale) claimedAt(at int64) tale {
	last := &s[len(s)-1]
	last.Lease = 200 * msec // the longest time that it may be on its way
	last.Items[0].Until = epoch + at*msec + last.Lease
	return s
}

// TestRulesKnowTheClock tells tales of a clock that is an hour ahead from 1000 to 2000.
func TestRulesKnowTheClock(t *testing.T) {
	t.Parallel()
	soon, far := tale{}.push(0, 1, 10), tale{}.push(0, 1, anHour/2)
	late := tale{}.push(1100, 1101, 10)
	for name, tt := range map[string]struct {
		tale  tale
		rules []string
	}{
		"due by the clock that leapt": {
			far.take(2, 1500, anHour/2+1, 1).ahead().settle(2, judge.Ack, 1510, 1500, judge.OK), nil,
		},
		"due by where the clock was before": {
			far.take(2, 2500, anHour/2+1, 1).ahead().settle(2, judge.Ack, 2510, 2500, judge.OK), []string{"early"},
		},
		"due by where the clock will be": {
			far.take(2, 500, anHour/2+1, 1).ahead().settle(2, judge.Ack, 510, 500, judge.OK), []string{"early"},
		},
		"the due time of an earlier push by a later clock": {
			late.take(2, 2500, 1111, 1).settle(2, judge.Ack, 2510, 2500, judge.OK), []string{"early"},
		},
		"a lease that the leap ended": {
			soon.take(2, 990, 11, 1).take(3, 1010, 11, 2).ahead().settle(2, judge.Ack, 1020, 990, judge.LeaseLost).
				settle(3, judge.Ack, 1030, 1010, judge.OK), nil,
		},
		"a lease that the leap ended, taken when the clock was back": {
			soon.take(2, 990, 11, 1).take(3, 2010, 11, 2).settle(3, judge.Ack, 2020, 2010, judge.OK), nil,
		},
		"held by two before the leap": {
			soon.take(2, 940, 11, 1).take(3, 950, 11, 2).settle(3, judge.Ack, 960, 950, judge.OK), []string{"lease", "linearizable"},
		},
		"held by two behind the leap": {
			soon.take(2, 1500, 11, 1).ahead().take(3, 1510, 11, 2).ahead().settle(3, judge.Ack, 1520, 1510, judge.OK),
			[]string{"lease", "linearizable"},
		},
		"held from before the leap back": {
			soon.take(2, 1990, 11, 1).ahead().take(3, 2200, 11, 2).settle(3, judge.Ack, 2210, 2200, judge.OK), []string{"lease", "linearizable"},
		},
		"a lease refused that no leap ended": {
			soon.take(2, 1500, 11, 1).ahead().settle(2, judge.Ack, 1510, 1500, judge.LeaseLost).settle(2, judge.Ack, 1520, 1500, judge.OK),
			[]string{"lease", "linearizable"},
		},
		"a claim that the leap ended on its way": {
			soon.take(3, 1100, 11, 2).ahead().settle(3, judge.Ack, 1105, 1100, judge.OK).take(2, 1110, 11, 1).claimedAt(990).
				settle(2, judge.Ack, 1120, 1110, judge.LeaseLost), nil,
		},
		"claimed at a time that the clock did not show": {
			soon.take(2, 500, 11, 1).claimedAt(anHour/2).settle(2, judge.Ack, 510, 500, judge.OK), []string{"early"},
		},
		"a stale ack accepted behind the leap": {
			soon.take(2, 990, 11, 1).settle(2, judge.Ack, 1500, 990, judge.OK), []string{"lease"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &judge.History{Calls: slices.Clone(tt.tale), ClockJumps: leaps(1000, 2000), Drained: true}
			if got := judge.Check(h).Rules(); !slices.Equal(got, tt.rules) {
				t.Errorf("found %v, want %v\n%s", got, tt.rules, judge.Timeline(h, 1))
			}
		})
	}
}

// TestClaimsOfATimeThatCameTwice has the clock be 80 ms ahead for a while, so that it shows some times twice: the hand-out of then was before
// another one, or behind it.
func TestClaimsOfATimeThatCameTwice(t *testing.T) {
	t.Parallel()
	told := tale{}.push(0, 1, 10).take(2, 60, 11, 1).settle(2, judge.Nack, 70, 60, judge.OK).
		take(3, 130, 71, 2).settle(3, judge.Ack, 140, 130, judge.OK)
	h := &judge.History{Calls: told, Drained: true, ClockJumps: []judge.ClockJump{
		{Start: epoch + 20*msec, End: epoch + 20*msec, Shift: 80 * msec},
		{Start: epoch + 55*msec, End: epoch + 55*msec},
	}}
	if got := judge.Check(h).Rules(); got != nil {
		t.Errorf("found %v\n%s", got, judge.Timeline(h, 1))
	}
}

// TestClaimsWhileTheClockJumps has two claims in the millisecond of a leap, one by the clock before it and one by the clock behind: rounded up, the
// first seems to be the last.
func TestClaimsWhileTheClockJumps(t *testing.T) {
	t.Parallel()
	told := tale{}.push(0, 1, 10).take(3, 1005, 11, 2).claimedAt(1001).ahead()
	told[len(told)-1].Items[0].Until -= msec / 10
	told = told.settle(3, judge.Ack, 1008, 1005, judge.OK).take(2, 1006, 11, 1).claimedAt(1001).settle(2, judge.Ack, 1020, 1006, judge.LeaseLost)
	h := &judge.History{Calls: told, Drained: true, ClockJumps: []judge.ClockJump{{Start: epoch + 1000*msec, End: epoch + 1005*msec, Shift: int64(time.Hour)}}}
	if got := judge.Check(h).Rules(); got != nil {
		t.Errorf("found %v\n%s", got, judge.Timeline(h, 1))
	}
}

// TestRepetitionAcrossAClockJumpIsIndeterminate has a push refused that was stored: excused only where a reply may have been lost and the clock jumped meanwhile.
func TestRepetitionAcrossAClockJumpIsIndeterminate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		start int64 // of the push, which takes 100 ms
		broke int64
		rules []string
	}{
		"both":             {950, 960, nil},
		"no leap":          {800, 810, []string{"linearizable", "unexpected"}},
		"no reply is lost": {950, 5000, []string{"linearizable", "unexpected"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told := tale{}.do(1, judge.Push, tt.start, tt.start+100, judge.Item{Out: judge.Duplicate, Delay: 10 * msec}).
				take(2, 1500, 1100, 1).ahead().settle(2, judge.Ack, 1510, 1500, judge.OK)
			at := epoch + tt.broke*msec
			h := &judge.History{Calls: told, ClockJumps: leaps(1000, 2000), RepeatAfter: int64(700 * time.Millisecond), Drained: true, Windows: []judge.Window{
				{Kind: "replies cut", Start: at, End: at, Breaks: true},
			}}
			if got := judge.Check(h).Rules(); !slices.Equal(got, tt.rules) {
				t.Errorf("found %v, want %v\n%s", got, tt.rules, judge.Timeline(h, 1))
			}
		})
	}
}

func TestLate(t *testing.T) {
	t.Parallel()
	due := time.Now()
	for _, tt := range []struct {
		at   time.Time
		want time.Duration
	}{
		{due.Add(-time.Second), -time.Second},
		{due.Add(time.Second), time.Second},
		{due.Add(time.Second).Round(0), time.Second},
		{setForward(due.Add(-time.Second), time.Minute), 59 * time.Second},
		{setForward(due.Add(time.Second), -time.Minute), time.Second},
		{setForward(due.Add(-time.Second), -time.Minute), -time.Second},
	} {
		if got := judge.Late(due, tt.at); got != tt.want {
			t.Errorf("%v is %v late, want %v", tt.at, got, tt.want)
		}
	}
}

// setForward is a time whose wall clock was set forward by d since the clocks began: the monotonic clock, which has no
// setter, shows less.
func setForward(at time.Time, d time.Duration) time.Time {
	at = at.Add(d)
	(*struct {
		wall uint64
		ext  int64 // the monotonic reading, if wall's first bit is set
	})(unsafe.Pointer(&at)).ext -= int64(d)
	return at
}
