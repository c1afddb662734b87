package judge_test

import (
	"slices"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/judge"
)

const (
	msec  = int64(time.Millisecond)
	epoch = int64(1_700_000_000_000) * msec
)

// A tale is a history of message 1, told in ms since some moment.
type tale []judge.Call

func (s tale) do(proc int, op judge.Op, start, end int64, it judge.Item) tale {
	it.N = 1
	return append(s, judge.Call{Proc: proc, Op: op, Start: epoch + start*msec, End: epoch + end*msec, Items: []judge.Item{it}})
}

func (s tale) push(start, end, delay int64) tale {
	return s.do(1, judge.Push, start, end, judge.Item{Out: judge.OK, Delay: delay * msec})
}

// replace is a push that takes the message's place.
func (s tale) replace(at int64, out judge.Outcome, delay int64) tale {
	return s.do(1, judge.Push, at, at+1, judge.Item{Out: out, Delay: delay * msec, Replace: true})
}

// take is a hand-out by the claim at a time, under a lease of 100 ms.
func (s tale) take(proc int, at, due int64, attempt int) tale {
	const lease = 100
	s = s.do(proc, judge.Receive, at-1, at+1, judge.Item{
		Out: judge.OK, Attempt: attempt, Token: backend.Token{Hi: uint64(at), Lo: 1}, Due: epoch + due*msec, Until: epoch + (at+lease)*msec,
	})
	s[len(s)-1].Lease = lease * msec
	return s
}

// spoiled has the last message come with another body.
func (s tale) spoiled() tale {
	s[len(s)-1].Items[0].Altered = true
	return s
}

// get is a Get that shows the message in that state, or does not find it.
func (s tale) get(at int64, state backend.State) tale {
	it := judge.Item{Out: judge.OK, State: state}
	if state == 0 {
		it.Out = judge.NotFound
	}
	return s.do(4, judge.Get, at, at+1, it)
}

func (s tale) settle(proc int, op judge.Op, at, taken int64, out judge.Outcome) tale {
	return s.do(proc, op, at, at+1, judge.Item{Out: out, Token: backend.Token{Hi: uint64(taken), Lo: 1}})
}

func TestRulesFindWhatBreaksThem(t *testing.T) {
	t.Parallel()
	start := tale{}.push(0, 1, 10)
	inFlight := func(claimed int64) tale {
		s := start.do(1, judge.Push, 15, 16, judge.Item{Out: judge.OK, Replace: true, AfterInFlight: true, Content: 1, Delay: 60 * msec}).
			take(2, 20, 11, 1).claimedAt(claimed).settle(2, judge.Ack, 30, 20, judge.OK).take(3, 100, 76, 1)
		s[len(s)-1].Items[0].Content = 1
		return s.settle(3, judge.Ack, 110, 100, judge.OK)
	}
	for name, tt := range map[string]struct {
		tale  tale
		rules []string
	}{
		"replaced in flight, and claimed before by an earlier Receive": {inFlight(12), nil},
		"replaced, and claimed after that":                             {inFlight(18), []string{"early", "linearizable", "replaced"}},
		"a plain life":                                                 {start.take(2, 20, 11, 1).settle(2, judge.Ack, 30, 20, judge.OK), nil},
		"a lease that ended":                                           {start.take(2, 20, 11, 1).take(3, 120, 11, 2).settle(3, judge.Ack, 130, 120, judge.OK), nil},
		"never handed out":                                             {start, []string{"linearizable", "lost"}},
		"handed out and not settled":                                   {start.take(2, 20, 11, 1), []string{"linearizable", "lost"}},
		"due too early":                                                {start.take(2, 20, 9, 1).settle(2, judge.Ack, 30, 20, judge.OK), []string{"early"}},
		"due by an earlier push than the one that replaced it": {
			start.replace(5, judge.OK, 60).take(2, 20, 11, 1).settle(2, judge.Ack, 30, 20, judge.OK), []string{"early"},
		},
		"due by a push that took place after it had returned": {
			start.replace(5, judge.Unknown, 10).replace(7, judge.OK, 60).take(2, 20, 15, 1).settle(2, judge.Ack, 30, 20, judge.OK), nil,
		},
		"due by a reschedule that took place after it had returned": {
			start.do(1, judge.Reschedule, 5, 6, judge.Item{Out: judge.Unknown, Delay: 10 * msec}).replace(7, judge.OK, 60).
				take(2, 20, 15, 1).settle(2, judge.Ack, 30, 20, judge.OK), []string{"early"},
		},
		"claimed before it was due": {start.take(2, 20, 21, 1).settle(2, judge.Ack, 30, 20, judge.OK), []string{"early"}},
		"arrived before it was due": {start.take(2, 5, 11, 1).settle(2, judge.Ack, 30, 5, judge.OK), []string{"early"}},
		"held by two":               {start.take(2, 20, 11, 1).take(3, 119, 11, 2).settle(3, judge.Ack, 130, 119, judge.OK), []string{"lease"}},
		"a stale ack accepted": {
			start.take(2, 20, 11, 1).take(3, 120, 11, 2).settle(2, judge.Ack, 130, 20, judge.OK).settle(3, judge.Ack, 140, 120, judge.LeaseLost),
			[]string{"lease", "linearizable"},
		},
		"a lease refused":           {start.take(2, 20, 11, 1).settle(2, judge.Ack, 30, 20, judge.LeaseLost).settle(2, judge.Ack, 40, 20, judge.OK), []string{"lease", "linearizable"}},
		"done and there again":      {start.take(2, 20, 11, 1).settle(2, judge.Ack, 30, 20, judge.OK).take(3, 40, 11, 2), []string{"duplicated", "linearizable"}},
		"cancelled and there again": {start.do(1, judge.Cancel, 2, 3, judge.Item{Out: judge.OK}).take(3, 40, 11, 1), []string{"duplicated", "linearizable"}},
		"cancelled while held":      {start.take(2, 20, 11, 1).do(1, judge.Cancel, 25, 26, judge.Item{Out: judge.OK}), []string{"linearizable"}},
		"an attempt left out":       {start.take(2, 20, 11, 1).take(3, 120, 11, 3).settle(3, judge.Ack, 130, 120, judge.OK), []string{"attempts"}},
		"an attempt not counted":    {start.take(2, 20, 11, 1).take(3, 120, 11, 1).settle(3, judge.Ack, 130, 120, judge.OK), []string{"attempts"}},
		"unknown":                   {tale{}.do(1, judge.Push, 0, 1, judge.Item{Out: judge.Unknown}), nil},
		"refused and there": {
			tale{}.do(1, judge.Push, 0, 1, judge.Item{Out: judge.Full}).take(2, 20, 11, 1).settle(2, judge.Ack, 30, 20, judge.OK),
			[]string{"linearizable", "unexpected"},
		},
		"shown through its life": {
			start.get(2, backend.StateScheduled).get(12, backend.StateReady).take(2, 20, 11, 1).get(25, backend.StateInFlight).get(130, backend.StateReady).
				take(3, 140, 11, 2).settle(3, judge.Dead, 150, 140, judge.OK).get(155, backend.StateDead).
				do(3, judge.DeleteDead, 160, 161, judge.Item{Out: judge.OK}).get(165, 0),
			nil,
		},
		"shown before it is pushed": {
			tale{}.get(-10, backend.StateScheduled).push(0, 1, 10).take(2, 20, 11, 1).settle(2, judge.Ack, 30, 20, judge.OK),
			[]string{"linearizable", "unexpected"},
		},
		"shown as ready while it is held": {start.take(2, 20, 11, 1).get(25, backend.StateReady).settle(2, judge.Ack, 30, 20, judge.OK), []string{"linearizable"}},
		"shown as dead while it waits":    {start.get(5, backend.StateDead).take(2, 20, 11, 1).settle(2, judge.Ack, 30, 20, judge.OK), []string{"linearizable"}},
		"not found while it waits":        {start.get(5, 0).take(2, 20, 11, 1).settle(2, judge.Ack, 30, 20, judge.OK), []string{"linearizable"}},
		"shown when it is done":           {start.take(2, 20, 11, 1).settle(2, judge.Ack, 30, 20, judge.OK).get(40, backend.StateInFlight), []string{"linearizable"}},
		"shown with another body": {
			start.get(5, backend.StateScheduled).spoiled().take(2, 20, 11, 1).settle(2, judge.Ack, 30, 20, judge.OK), []string{"unexpected"},
		},
		"not whole": {start.take(2, 20, 11, 1).spoiled().settle(2, judge.Ack, 30, 20, judge.OK), []string{"unexpected"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &judge.History{Calls: tt.tale, Drained: true}
			if got := judge.Check(h).Rules(); !slices.Equal(got, tt.rules) {
				t.Errorf("found %v, want %v\n%s", got, tt.rules, judge.Timeline(h, 1))
			}
		})
	}
}

// TestDeclaredLossIsExcused has the same loss once within what the store declares and once beyond it.
func TestDeclaredLossIsExcused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		failover int64
		cost     int
		rules    []string
	}{
		"just after the push": {50, 1, nil},
		"long after it":       {5000, 0, []string{"linearizable", "lost"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := epoch + tt.failover*msec
			h := &judge.History{
				Calls: tale{}.push(0, 1, 10), Drained: true,
				Windows: []judge.Window{{Kind: "failover", Start: at, End: at + msec, Undo: int64(time.Second), Pushes: true}},
			}
			v := judge.Check(h)
			if !slices.Equal(v.Rules(), tt.rules) || v.Counts.UndoneLost != tt.cost {
				t.Errorf("found %v at a cost of %d, want %v at %d", v.Rules(), v.Counts.UndoneLost, tt.rules, tt.cost)
			}
		})
	}
}

// TestWritesThatAreSafe has a push within a window that declares loss, once while that may happen and once when it cannot any more.
func TestWritesThatAreSafe(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		safe  int64
		cost  int
		rules []string
	}{
		"until the end":     {0, 1, nil},
		"until after it":    {150, 1, nil},
		"until long before": {80, 0, []string{"linearizable", "lost"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := judge.Window{Kind: "failover", Start: epoch + 50*msec, End: epoch + 200*msec, Undo: 1, Pushes: true}
			if tt.safe != 0 {
				w.Safe = epoch + tt.safe*msec
			}
			v := judge.Check(&judge.History{Calls: tale{}.push(100, 101, 20), Drained: true, Windows: []judge.Window{w}})
			if !slices.Equal(v.Rules(), tt.rules) || v.Counts.UndoneLost != tt.cost {
				t.Errorf("found %v at a cost of %d, want %v at %d", v.Rules(), v.Counts.UndoneLost, tt.rules, tt.cost)
			}
		})
	}
}

// TestUndoneHandOutsAreNotCounted has hand-outs at 20 and 120, a loss at 160, and another hand-out, which counts those of before that were not
// undone.
func TestUndoneHandOutsAreNotCounted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		undo    int64
		attempt int
		rules   []string
	}{
		"both undone":               {1000, 1, nil},
		"one undone":                {50, 2, nil},
		"one undone, and two gone":  {50, 1, []string{"attempts"}},
		"none undone, and one gone": {1, 2, []string{"attempts"}},
		"none undone":               {1, 3, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &judge.History{
				Calls: tale{}.push(0, 1, 10).take(2, 20, 11, 1).take(3, 120, 11, 2).
					take(4, 220, 11, tt.attempt).settle(4, judge.Ack, 230, 220, judge.OK),
				Drained: true,
				Windows: []judge.Window{{Kind: "power cut", Start: epoch + 160*msec, End: epoch + 170*msec, Undo: tt.undo * msec, Pushes: true}},
			}
			if got := judge.Check(h).Rules(); !slices.Equal(got, tt.rules) {
				t.Errorf("found %v, want %v\n%s", got, tt.rules, judge.Timeline(h, 1))
			}
		})
	}
}

func TestPoisonHasToDieInTime(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		poison judge.Poison
		found  bool
	}{
		"as it should":    {judge.Poison{Max: 3, Seen: []int{1, 2, 3}, Dead: true, Letters: 1, Attempts: 4}, false},
		"alive":           {judge.Poison{Max: 3, Seen: []int{1, 2, 3}}, true},
		"too late":        {judge.Poison{Max: 3, Seen: []int{1, 2, 3, 4}, Dead: true, Letters: 1, Attempts: 5}, true},
		"too soon":        {judge.Poison{Max: 3, Seen: []int{1, 2}, Dead: true, Letters: 1, Attempts: 4}, true},
		"twice the same":  {judge.Poison{Max: 3, Seen: []int{1, 1, 2, 3}, Dead: true, Letters: 1, Attempts: 4}, true},
		"wrongly counted": {judge.Poison{Max: 3, Seen: []int{1, 2, 3}, Dead: true, Letters: 1, Attempts: 1}, true},
		"spoiled":         {judge.Poison{Max: 3, Seen: []int{1, 2, 3}, Altered: true, Dead: true, Letters: 1, Attempts: 4}, true},
		"dead twice":      {judge.Poison{Max: 3, Seen: []int{1, 2, 3}, Dead: true, Letters: 2, Attempts: 4}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := judge.Check(&judge.History{Poison: []judge.Poison{tt.poison}, Drained: true})
			if got := slices.Contains(v.Rules(), "poison"); got != tt.found {
				t.Errorf("found %v", v.Violations)
			}
		})
	}
}

// TestManyCopiesNeedALongFault has all messages come again after their acks. A break explains few
// copies. One that lasted until the store sent again what it had under way explains all.
func TestManyCopiesNeedALongFault(t *testing.T) {
	t.Parallel()
	var told tale
	for i := range 10 {
		at := int64(1000 + 100*i)
		one := tale{}.push(0, 1, 10).take(2, at, 11, 1).settle(2, judge.Ack, at+10, at, judge.OK).
			take(3, at+5000, 11, 1).settle(3, judge.Ack, at+5010, at+5000, judge.OK)
		for _, call := range one {
			call.Items[0].N = uint32(i + 1)
			told = append(told, call)
		}
	}
	for _, resends := range []bool{true, false} {
		h := &judge.History{
			Calls: told, Drained: true, Traits: backend.Traits{Lacks: backend.Lacking(backend.SingleCopy, backend.ExactAttempts, backend.Ordering)},
			Windows: []judge.Window{{Kind: "server kill -9", Start: epoch + 5*msec, End: epoch + 500*msec, Breaks: true, Resends: resends}},
		}
		v := judge.Check(h)
		if found := slices.Contains(v.Rules(), "duplicated"); found == resends {
			t.Errorf("where the store sent again, %v, many copies break a rule: %v: %v", resends, found, v.Violations)
		}
	}
}

// TestCopiesCountApart has a break leave a message twice, long before either copy comes. Where nothing broke there are no copies.
func TestCopiesCountApart(t *testing.T) {
	t.Parallel()
	told := tale{}.push(0, 1, 10).take(2, 9000, 11, 2).take(3, 9200, 11, 2).settle(2, judge.Ack, 9250, 9000, judge.LeaseLost).
		settle(3, judge.Ack, 9260, 9200, judge.OK)
	for _, broke := range []bool{true, false} {
		h := &judge.History{
			Calls: told, Drained: true, Traits: backend.Traits{Lacks: backend.Lacking(backend.SingleCopy, backend.ExactAttempts)},
			Windows: []judge.Window{{Kind: "server kill -9", Start: epoch + 5*msec, End: epoch + 8*msec, Breaks: broke}},
		}
		if found := slices.Contains(judge.Check(h).Rules(), "attempts"); found == broke {
			t.Errorf("where something broke, %v, the count of a copy breaks a rule: %v", broke, found)
		}
	}
}
