package judge_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/judge"
)

// A plot is a history of several messages, told in ms since some moment.
type plot []judge.Call

func (p plot) call(op judge.Op, start, end int64, items ...judge.Item) plot {
	for i := range items {
		items[i].Out = judge.OK
	}
	return append(p, judge.Call{Proc: 1, Op: op, Start: epoch + start*msec, End: epoch + end*msec, Items: items})
}

// push pushes messages with due times, all at once.
func (p plot) push(at int64, first uint32, dues ...int64) plot {
	items := make([]judge.Item, len(dues))
	for i, due := range dues {
		items[i] = judge.Item{N: first + uint32(i), Due: epoch + due*msec}
	}
	return p.call(judge.Push, at, at+1, items...)
}

// take is a hand-out of messages, each given as number and due time, after some wait, and their ack.
func (p plot) take(from, at int64, given ...int64) plot {
	items := make([]judge.Item, len(given)/2)
	for i := range items {
		items[i] = judge.Item{
			N: uint32(given[2*i]), Due: epoch + given[2*i+1]*msec, Attempt: 1, Token: backend.Token{Hi: uint64(at), Lo: uint64(i)}, Until: epoch + (at+100)*msec,
		}
	}
	p = p.call(judge.Receive, from, at+1, items...)
	p[len(p)-1].Lease = 100 * msec
	return p.call(judge.Ack, at+2, at+3, slices.Clone(items)...)
}

// waits is a Receive that gets nothing.
func (p plot) waits(from, to int64) plot { return p.call(judge.Receive, from, to) }

// aside has all of it happen on the queue beside.
func (p plot) aside() plot {
	for i := range p {
		p[i].Second = true
	}
	return p
}

func (p plot) counts(at, count int64) plot {
	p = p.call(judge.Stats, at, at+1)
	p[len(p)-1].Count = count
	return p
}

// pause has PauseAll return at a time, for as long as that.
func (p plot) pause(at, lasts int64) plot {
	p = p.call(judge.PauseAll, at-1, at)
	p[len(p)-1].Pause = lasts * msec
	return p
}

func (p plot) resume(at int64) plot { return p.call(judge.ResumeAll, at, at+1) }

// replace replaces a message, due at 10.
func (p plot) replace(at int64, n, content uint32) plot {
	return p.call(judge.Push, at, at+1, judge.Item{N: n, Due: epoch + 10*msec, Replace: true, Content: content})
}

// replaceHeld is replace with AfterInFlight.
func (p plot) replaceHeld(at int64, n, content uint32) plot {
	p = p.replace(at, n, content)
	p[len(p)-1].Items[0].AfterInFlight = true
	return p
}

// content has the last hand-out show a content.
func (p plot) content(content uint32) plot {
	p[len(p)-2].Items[0].Content = content
	return p
}

// failed has the last call fail.
func (p plot) failed() plot {
	p[len(p)-1].Err = "lost"
	return p
}

func (p plot) errs(got string, want ...string) plot {
	p = p.call(judge.Misuse, 1, 2)
	p[len(p)-1].Misuse = &judge.Mistake{What: "something", Want: want, Got: got}
	return p
}

// crossed has the last hand-out come from the other queue.
func (p plot) crossed() plot {
	p[len(p)-2].Second = !p[len(p)-2].Second
	return p
}

func TestRulesOnHistoriesFindWhatBreaksThem(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		plot  plot
		rules []string
	}{
		"a batch in order":                 {plot{}.push(0, 1, 10, 20).take(19, 20, 1, 10, 2, 20), nil},
		"a batch out of order":             {plot{}.push(0, 1, 10, 20).take(19, 20, 2, 20, 1, 10), []string{"order"}},
		"a batch of one time out of order": {plot{}.push(0, 1, 10, 10).take(19, 20, 2, 10, 1, 10), []string{"order"}},
		"two pushes of one time swapped":   {plot{}.push(0, 1, 10).push(2, 2, 10).take(19, 20, 2, 10, 1, 10), []string{"order"}},
		"two pushes that overlap":          {plot{}.push(0, 1, 10).push(1, 2, 10).take(19, 20, 2, 10, 1, 10), nil},
		"one by one in order":              {plot{}.push(0, 1, 10, 20).take(19, 30, 1, 10).take(35, 40, 2, 20).aside(), nil},
		"overtaken":                        {plot{}.push(0, 1, 10, 20).take(19, 30, 2, 20).take(35, 40, 1, 10).aside(), []string{"order"}},
		"overtaken at one time":            {plot{}.push(0, 1, 10, 10).take(19, 30, 2, 10).take(35, 40, 1, 10).aside(), []string{"order"}},
		"two at once for one":              {plot{}.push(0, 1, 10, 20).take(19, 30, 1, 10, 2, 20).aside(), []string{"order"}},
		"overtaken where many take":        {plot{}.push(0, 1, 10, 20).take(19, 30, 2, 20).take(35, 40, 1, 10), nil},
		"pushed too late to be first":      {plot{}.push(0, 1, 20).push(29, 2, 10).take(19, 30, 1, 20).take(35, 40, 2, 10).aside(), nil},
		"from another queue":               {plot{}.push(0, 1, 10).take(19, 20, 1, 10).crossed(), []string{"isolation"}},
		"woken in time":                    {plot{}.push(0, 1, 10).waits(2, 3000).take(3000, 3900, 1, 10).aside(), nil},
		"woken too late":                   {plot{}.push(0, 1, 10).waits(2, 3000).take(3000, 5100, 1, 10).aside(), []string{"wake-up"}},
		"late with nobody waiting":         {plot{}.push(0, 1, 10).take(9000, 9100, 1, 10).aside(), nil},
		"as many as there are":             {plot{}.push(0, 1, 10, 10).counts(5, 2).take(19, 20, 1, 10).counts(30, 1).take(40, 41, 2, 10).counts(50, 0), nil},
		"one too few":                      {plot{}.push(0, 1, 10, 10).counts(5, 1).take(19, 20, 1, 10, 2, 10), []string{"accounting"}},
		"one too many":                     {plot{}.push(0, 1, 10, 10).take(19, 20, 1, 10, 2, 10).counts(30, 1), []string{"accounting"}},
		"counted while it is pushed":       {plot{}.push(0, 1, 10).counts(0, 0).counts(1, 1).take(19, 20, 1, 10), nil},
		"claimed in a pause":               {plot{}.push(0, 1, 1).pause(10, 0).take(11, 20, 1, 1), []string{"paused"}},
		"claimed in a pause with an end":   {plot{}.push(0, 1, 1).pause(10, 20).take(11, 20, 1, 1), []string{"paused"}},
		"claimed after a pause":            {plot{}.push(0, 1, 1).pause(10, 5).take(11, 20, 1, 1), nil},
		"claimed after a resume":           {plot{}.push(0, 1, 1).pause(10, 0).resume(15).take(11, 20, 1, 1), nil},
		"claimed before a resume":          {plot{}.push(0, 1, 1).pause(10, 0).take(11, 20, 1, 1).resume(30), []string{"paused"}},
		"claimed in a second pause":        {plot{}.push(0, 1, 1).pause(5, 0).resume(8).pause(15, 0).take(11, 20, 1, 1), []string{"paused"}},
		"a pause that failed":              {plot{}.push(0, 1, 1).pause(10, 0).failed().take(11, 20, 1, 1), nil},
		"a resume that came late":          {plot{}.push(0, 1, 1).resume(5).failed().pause(10, 0).take(11, 20, 1, 1), nil},
		"claimed before a pause":           {plot{}.push(0, 1, 1).take(11, 20, 1, 1).pause(22, 0), nil},
		"the newest content":               {plot{}.push(0, 1, 10).replace(2, 1, 5).take(19, 20, 1, 10).content(5), nil},
		"an older content":                 {plot{}.push(0, 1, 10).replace(2, 1, 5).take(19, 20, 1, 10).content(0), []string{"linearizable", "replaced"}},
		"replaced in flight":               {plot{}.push(0, 1, 10).take(19, 20, 1, 10).replaceHeld(20, 1, 5).take(30, 31, 1, 10).content(5), nil},
		"replaced in flight, and lost":     {plot{}.push(0, 1, 10).take(19, 20, 1, 10).replaceHeld(20, 1, 5), []string{"linearizable"}},
		"replaced in flight, and undone":   {plot{}.push(0, 1, 10).take(19, 20, 1, 10).replaceHeld(20, 1, 5).take(30, 31, 1, 10).content(0), []string{"linearizable", "replaced"}},
		"a mistake refused":                {plot{}.errs("invalid", "invalid"), nil},
		"a mistake accepted":               {plot{}.errs("ok", "invalid"), []string{"input"}},
		"a mistake without its error":      {plot{}.errs("unknown", "invalid"), []string{"input"}},
		"an answer that faults took":       {plot{}.errs("unknown", "lease-lost", "unknown"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &judge.History{Calls: tt.plot, Drained: true}
			if v := judge.Check(h); !slices.Equal(v.Rules(), tt.rules) {
				t.Errorf("found %v, want %v", v.Violations, tt.rules)
			}
		})
	}
}

// TestRulesKeepQuietInFaults has the same histories while something is broken that explains them, or that has nothing to do with them.
func TestRulesKeepQuietInFaults(t *testing.T) {
	t.Parallel()
	late := func() plot { return plot{}.push(0, 1, 10).take(2, 5100, 1, 10).aside() }
	overtaken := func() plot { return plot{}.push(0, 1, 10, 20).take(19, 30, 2, 20).take(35, 40, 1, 10).aside() }
	for name, tt := range map[string]struct {
		plot   plot
		window judge.Window
		rules  []string
	}{
		"late in a fault":                {late(), judge.Window{Start: 100, End: 200}, nil},
		"late soon after a fault":        {late(), judge.Window{Start: -1900, End: -1800}, nil},
		"late long after a fault":        {late(), judge.Window{Start: -3000, End: -2100}, []string{"wake-up"}},
		"late, and others were struck":   {late(), judge.Window{Start: 100, End: 200, Elsewhere: true}, []string{"wake-up"}},
		"overtaken while replies broke":  {overtaken(), judge.Window{Start: 0, End: 50, Breaks: true}, []string{"order"}},
		"overtaken while the clock went": {overtaken(), judge.Window{Start: 25, End: 26}, nil},
		"overtaken as the store forgot":  {overtaken(), judge.Window{Start: 500, End: 501, Undo: 1000 * msec}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := tt.window
			w.Start, w.End = epoch+w.Start*msec, epoch+w.End*msec
			h := &judge.History{Calls: tt.plot, Windows: []judge.Window{w}, Drained: true}
			if strings.HasSuffix(name, "the clock went") {
				h.ClockJumps = []judge.ClockJump{{Start: w.Start, End: w.End}}
			}
			if v := judge.Check(h); !slices.Equal(v.Rules(), tt.rules) {
				t.Errorf("found %v, want %v", v.Violations, tt.rules)
			}
		})
	}
}

// TestUnorderedStoresHaveNoOrder reads a batch that is out of order.
func TestUnorderedStoresHaveNoOrder(t *testing.T) {
	t.Parallel()
	h := &judge.History{Calls: plot{}.push(0, 1, 10, 20).take(19, 20, 2, 20, 1, 10), Drained: true, Traits: backend.Traits{Lacks: backend.Lacking(backend.Ordering)}}
	if v := judge.Check(h); len(v.Violations) > 0 {
		t.Errorf("found %v", v.Violations)
	}
}

// TestCopiesCountByThemselves has a message come twice as attempt 1, of which a break before the first hand-out may have left a copy.
func TestCopiesCountByThemselves(t *testing.T) {
	t.Parallel()
	calls := plot{}.push(0, 1, 10).take(3999, 4000, 1, 10).take(4999, 5000, 1, 10)
	for name, tt := range map[string]struct {
		window judge.Window
		rules  []string
	}{
		"a break before the first": {judge.Window{Start: epoch + 100*msec, End: epoch + 200*msec, Breaks: true}, nil},
		"no break":                 {judge.Window{}, []string{"attempts", "duplicated"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &judge.History{Calls: slices.Clone(calls), Windows: []judge.Window{tt.window}, Drained: true, Traits: backend.Traits{Lacks: backend.Lacking(backend.SingleCopy, backend.Ordering)}}
			if v := judge.Check(h); !slices.Equal(v.Rules(), tt.rules) {
				t.Errorf("found %v, want %v", v.Violations, tt.rules)
			}
		})
	}
}

// TestRecountedAttemptsNeedABreak has a message come as attempt 2 at first. A store that recounts may do that where a connection broke, and not else.
func TestRecountedAttemptsNeedABreak(t *testing.T) {
	t.Parallel()
	calls := plot{}.push(0, 1, 10).take(49, 50, 1, 10) // too soon for a lease that nobody saw to have ended
	for i := range calls[1:] {
		calls[1+i].Items[0].Attempt = 2
	}
	for name, tt := range map[string]struct {
		window judge.Window
		rules  []string
	}{
		"a break between push and hand-out": {judge.Window{Start: epoch + 20*msec, End: epoch + 30*msec, Breaks: true}, nil},
		"workers that only pause":           {judge.Window{Start: epoch + 20*msec, End: epoch + 30*msec, Elsewhere: true}, []string{"attempts"}},
		"no break":                          {judge.Window{}, []string{"attempts"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &judge.History{Calls: slices.Clone(calls), Windows: []judge.Window{tt.window}, Drained: true, Traits: backend.Traits{Lacks: backend.Lacking(backend.ExactAttempts, backend.Ordering)}}
			if v := judge.Check(h); !slices.Equal(v.Rules(), tt.rules) {
				t.Errorf("found %v, want %v", v.Violations, tt.rules)
			}
		})
	}
}

// TestRulesThatSawNothing has histories in which some rules have nothing to look at.
func TestRulesThatSawNothing(t *testing.T) {
	t.Parallel()
	whole := plot{}.push(0, 1, 10, 20).take(19, 30, 1, 10).take(35, 40, 2, 20).aside()
	whole = whole.counts(50, 0).errs("invalid", "invalid")
	whole[len(whole)-2].Second = false
	failed := plot{}.push(0, 1, 10).counts(5, 0)
	failed[len(failed)-1].Err = "the store is away"
	refused := plot{}.replaceHeld(60, 1, 1)
	refused[0].Items[0].Out = judge.Refused
	for name, tt := range map[string]struct {
		plot      plot
		calm      bool
		unordered bool
		idle      []string
	}{
		"all":                          {whole, true, false, nil},
		"none":                         {nil, true, false, []string{"order", "wake-up", "input"}},
		"none, in faults":              {nil, false, false, []string{"order", "input"}},
		"none, of a store in disorder": {nil, false, true, []string{"input"}},
		"counts that came to nought":   {failed, false, true, []string{"accounting", "input"}},
		"no replacement that took place": {
			slices.Concat(whole, refused), true, false, []string{"replaced", "replaced in flight"},
		},
		"no replacement in flight": {
			slices.Concat(whole, plot{}.push(50, 3, 1000).replaceHeld(60, 3, 1)), true, false, []string{"replaced in flight"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &judge.History{Calls: tt.plot, Drained: true}
			if tt.unordered {
				h.Traits.Lacks = backend.Lacking(backend.Ordering)
			}
			if idle := judge.Check(h).Idle(h, tt.calm); !slices.Equal(idle, tt.idle) {
				t.Errorf("found %v, want %v", idle, tt.idle)
			}
		})
	}
}

// TestRepeatedPushOfAMessageThatWasChanged has a push refused that was stored: excused only where its
// reply may have been lost, and another call changed the message before the repetition.
func TestRepeatedPushOfAMessageThatWasChanged(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		broke   int64
		changed int64 // by a replacement in flight
		out     judge.Outcome
		rules   []string
	}{
		"both":                        {50, 25, judge.OK, nil},
		"no reply is lost":            {5000, 25, judge.OK, []string{"attempts", "duplicated", "linearizable", "unexpected"}},
		"changed after the repeating": {50, 105, judge.OK, []string{"attempts", "duplicated", "linearizable", "unexpected"}},
		"a change that was refused":   {50, 25, judge.Refused, []string{"linearizable", "unexpected"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told := tale{}.do(1, judge.Push, 0, 100, judge.Item{Out: judge.Duplicate, Delay: 10 * msec}).take(2, 20, 11, 1).
				do(2, judge.Push, tt.changed, tt.changed+2, judge.Item{Out: tt.out, Replace: true, AfterInFlight: true, Content: 1, Delay: 10 * msec}).
				settle(2, judge.Ack, 110, 20, judge.OK)
			if tt.out == judge.OK {
				told = told.take(2, 150, tt.changed+10, 1)
				told[len(told)-1].Items[0].Content = 1
				told = told.settle(2, judge.Ack, 160, 150, judge.OK)
			}
			at := epoch + tt.broke*msec
			h := &judge.History{Calls: told, RepeatAfter: int64(700 * time.Millisecond), Drained: true, Windows: []judge.Window{
				{Kind: "replies cut", Start: at, End: at, Breaks: true},
			}}
			if got := judge.Check(h).Rules(); !slices.Equal(got, tt.rules) {
				t.Errorf("found %v, want %v\n%s", got, tt.rules, judge.Timeline(h, 1))
			}
		})
	}
}
