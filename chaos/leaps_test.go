package chaos_test

import (
	"slices"
	"testing"
	"time"

	"github.com/delayq/delayq/chaos"
)

// leaps has the store's clock be an hour ahead for so many ms of a tale.
func leaps(from, to int64) []chaos.Leap {
	return []chaos.Leap{
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
			far.take(2, 1500, anHour/2+1, 1).ahead().settle(2, chaos.Ack, 1510, 1500, chaos.OK), nil,
		},
		"due by where the clock was before": {
			far.take(2, 2500, anHour/2+1, 1).ahead().settle(2, chaos.Ack, 2510, 2500, chaos.OK), []string{"early"},
		},
		"due by where the clock will be": {
			far.take(2, 500, anHour/2+1, 1).ahead().settle(2, chaos.Ack, 510, 500, chaos.OK), []string{"early"},
		},
		"the due time of an earlier push by a later clock": {
			late.take(2, 2500, 1111, 1).settle(2, chaos.Ack, 2510, 2500, chaos.OK), []string{"early"},
		},
		"a lease that the leap ended": {
			soon.take(2, 990, 11, 1).take(3, 1010, 11, 2).ahead().settle(2, chaos.Ack, 1020, 990, chaos.LeaseLost).
				settle(3, chaos.Ack, 1030, 1010, chaos.OK), nil,
		},
		"a lease that the leap ended, taken when the clock was back": {
			soon.take(2, 990, 11, 1).take(3, 2010, 11, 2).settle(3, chaos.Ack, 2020, 2010, chaos.OK), nil,
		},
		"held by two before the leap": {
			soon.take(2, 940, 11, 1).take(3, 950, 11, 2).settle(3, chaos.Ack, 960, 950, chaos.OK), []string{"lease", "linear"},
		},
		"held by two behind the leap": {
			soon.take(2, 1500, 11, 1).ahead().take(3, 1510, 11, 2).ahead().settle(3, chaos.Ack, 1520, 1510, chaos.OK),
			[]string{"lease", "linear"},
		},
		"held from before the leap back": {
			soon.take(2, 1990, 11, 1).ahead().take(3, 2200, 11, 2).settle(3, chaos.Ack, 2210, 2200, chaos.OK), []string{"lease", "linear"},
		},
		"a lease refused that no leap ended": {
			soon.take(2, 1500, 11, 1).ahead().settle(2, chaos.Ack, 1510, 1500, chaos.LeaseLost).settle(2, chaos.Ack, 1520, 1500, chaos.OK),
			[]string{"lease", "linear"},
		},
		"a claim that the leap ended on its way": {
			soon.take(3, 1100, 11, 2).ahead().settle(3, chaos.Ack, 1105, 1100, chaos.OK).take(2, 1110, 11, 1).claimedAt(990).
				settle(2, chaos.Ack, 1120, 1110, chaos.LeaseLost), nil,
		},
		"claimed at a time that the clock did not show": {
			soon.take(2, 500, 11, 1).claimedAt(anHour/2).settle(2, chaos.Ack, 510, 500, chaos.OK), []string{"early"},
		},
		"a stale ack accepted behind the leap": {
			soon.take(2, 990, 11, 1).settle(2, chaos.Ack, 1500, 990, chaos.OK), []string{"lease"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &chaos.History{Calls: slices.Clone(tt.tale), Leaps: leaps(1000, 2000), Drained: true}
			if got := chaos.Check(h).Rules(); !slices.Equal(got, tt.rules) {
				t.Errorf("found %v, want %v\n%s", got, tt.rules, chaos.Timeline(h, 1))
			}
		})
	}
}

// TestClaimsOfATimeThatCameTwice has the clock be 80 ms ahead for a while, so that it shows some times twice: the hand-out of then was before
// another one, or behind it.
func TestClaimsOfATimeThatCameTwice(t *testing.T) {
	t.Parallel()
	told := tale{}.push(0, 1, 10).take(2, 60, 11, 1).settle(2, chaos.Nack, 70, 60, chaos.OK).
		take(3, 130, 71, 2).settle(3, chaos.Ack, 140, 130, chaos.OK)
	h := &chaos.History{Calls: told, Drained: true, Leaps: []chaos.Leap{
		{Start: epoch + 20*msec, End: epoch + 20*msec, Shift: 80 * msec},
		{Start: epoch + 55*msec, End: epoch + 55*msec},
	}}
	if got := chaos.Check(h).Rules(); got != nil {
		t.Errorf("found %v\n%s", got, chaos.Timeline(h, 1))
	}
}

// TestClaimsWhileTheClockJumps has two claims in the millisecond of a leap, one by the clock before it and one by the clock behind: rounded up, the
// first seems to be the last.
func TestClaimsWhileTheClockJumps(t *testing.T) {
	t.Parallel()
	told := tale{}.push(0, 1, 10).take(3, 1005, 11, 2).claimedAt(1001).ahead()
	told[len(told)-1].Items[0].Until -= msec / 10
	told = told.settle(3, chaos.Ack, 1008, 1005, chaos.OK).take(2, 1006, 11, 1).claimedAt(1001).settle(2, chaos.Ack, 1020, 1006, chaos.LeaseLost)
	h := &chaos.History{Calls: told, Drained: true, Leaps: []chaos.Leap{{Start: epoch + 1000*msec, End: epoch + 1005*msec, Shift: int64(time.Hour)}}}
	if got := chaos.Check(h).Rules(); got != nil {
		t.Errorf("found %v\n%s", got, chaos.Timeline(h, 1))
	}
}

// TestRepetitionAcrossALeapIsMoot has a push refused that was stored: excused only where a reply may have been lost and the clock jumped meanwhile.
func TestRepetitionAcrossALeapIsMoot(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		start int64 // of the push, which takes 100 ms
		broke int64
		rules []string
	}{
		"both":             {950, 960, nil},
		"no leap":          {800, 810, []string{"linear", "unexpected"}},
		"no reply is lost": {950, 5000, []string{"linear", "unexpected"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told := tale{}.do(1, chaos.Push, tt.start, tt.start+100, chaos.Item{Out: chaos.Duplicate, Delay: 10 * msec}).
				take(2, 1500, 1100, 1).ahead().settle(2, chaos.Ack, 1510, 1500, chaos.OK)
			at := epoch + tt.broke*msec
			h := &chaos.History{Calls: told, Leaps: leaps(1000, 2000), Moot: true, Drained: true, Windows: []chaos.Window{
				{Kind: "replies cut", Start: at, End: at, Breaks: true},
			}}
			if got := chaos.Check(h).Rules(); !slices.Equal(got, tt.rules) {
				t.Errorf("found %v, want %v\n%s", got, tt.rules, chaos.Timeline(h, 1))
			}
		})
	}
}
