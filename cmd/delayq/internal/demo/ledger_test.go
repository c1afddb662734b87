package demo

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// A story tells a ledger what a queue did with the message "m", pushed with the body "b" and due
// at the given time.
type story func(l *ledger, due time.Time)

var verdicts = []struct {
	name   string
	tell   story
	want   string // a part of the summary
	broken bool
}{
	{
		name: "in time",
		tell: func(l *ledger, due time.Time) { take(l, due.Add(time.Millisecond)); l.done("m") },
		want: "pushed 1 handled 1 cancelled 0 dead 0 redriven 0 | early 0 lost 0 duplicates 0 fired-after-cancel 0 altered 0 left 0 | lateness p50 1.0ms p99 1.0ms max 1.0ms",
	},
	{
		name: "at the very moment",
		tell: func(l *ledger, due time.Time) { take(l, due); l.done("m") },
		want: "early 0 lost 0",
	},
	{
		name:   "a nanosecond early",
		tell:   func(l *ledger, due time.Time) { take(l, due.Add(-1)); l.done("m") },
		want:   "early 1 lost 0 duplicates 0 fired-after-cancel 0 altered 0 left 0 | lateness p50 - p99 - max -",
		broken: true,
	},
	{
		name:   "never",
		tell:   func(*ledger, time.Time) {},
		want:   "early 0 lost 1 duplicates 0",
		broken: true,
	},
	{
		name:   "taken and never handled",
		tell:   func(l *ledger, due time.Time) { take(l, due) },
		want:   "handled 0 cancelled 0 dead 0 redriven 0 | early 0 lost 1",
		broken: true,
	},
	{
		name:   "twice",
		tell:   func(l *ledger, due time.Time) { take(l, due); l.done("m"); take(l, due); l.done("m") },
		want:   "handled 1 cancelled 0 dead 0 redriven 0 | early 0 lost 0 duplicates 1",
		broken: true,
	},
	{
		name:   "by two workers at once",
		tell:   func(l *ledger, due time.Time) { take(l, due); take(l, due); l.done("m"); l.done("m") },
		want:   "duplicates 1",
		broken: true,
	},
	{
		name: "again after a failure",
		tell: func(l *ledger, due time.Time) {
			take(l, due)
			l.failed("m", due.Add(time.Second))
			take(l, due.Add(time.Second))
			l.done("m")
		},
		want: "handled 1 cancelled 0 dead 0 redriven 0 | early 0 lost 0 duplicates 0",
	},
	{
		name: "too soon after a failure",
		tell: func(l *ledger, due time.Time) {
			take(l, due)
			l.failed("m", due.Add(time.Second))
			take(l, due.Add(time.Second-1))
			l.done("m")
		},
		want:   "early 1 lost 0 duplicates 0",
		broken: true,
	},
	{
		name: "again after its worker died",
		tell: func(l *ledger, due time.Time) {
			take(l, due)
			l.died("m", time.Second)
			take(l, due.Add(time.Second))
			l.done("m")
		},
		want: "handled 1 cancelled 0 dead 0 redriven 0 | early 0 lost 0 duplicates 0",
	},
	{
		name: "again while the dead worker's lease lasts",
		tell: func(l *ledger, due time.Time) {
			take(l, due)
			l.died("m", time.Second)
			take(l, due.Add(time.Second-1))
			l.done("m")
		},
		want:   "early 0 lost 0 duplicates 1",
		broken: true,
	},
	{
		name: "thrice for one dead worker",
		tell: func(l *ledger, due time.Time) {
			take(l, due)
			l.died("m", 0)
			take(l, due)
			l.done("m")
			take(l, due)
		},
		want:   "early 0 lost 0 duplicates 1",
		broken: true,
	},
	{
		name: "cancelled",
		tell: func(l *ledger, _ time.Time) { l.cancelled("m") },
		want: "handled 0 cancelled 1 dead 0 redriven 0 | early 0 lost 0",
	},
	{
		name:   "fires after it was cancelled",
		tell:   func(l *ledger, due time.Time) { l.cancelled("m"); take(l, due); l.done("m") },
		want:   "handled 0 cancelled 1 dead 0 redriven 0 | early 0 lost 0 duplicates 0 fired-after-cancel 1",
		broken: true,
	},
	{
		name:   "cancelled in a worker's hands",
		tell:   func(l *ledger, due time.Time) { take(l, due); l.cancelled("m"); l.done("m") },
		want:   "handled 0 cancelled 1 dead 0 redriven 0 | early 0 lost 0 duplicates 0 fired-after-cancel 1",
		broken: true,
	},
	{
		name: "cancelled while it waits for its second try",
		tell: func(l *ledger, due time.Time) { take(l, due); l.failed("m", due); l.cancelled("m") },
		want: "cancelled 1 dead 0 redriven 0 | early 0 lost 0 duplicates 0 fired-after-cancel 0",
	},
	{
		name:   "another body",
		tell:   func(l *ledger, due time.Time) { deliver(l, "B", due); l.done("m") },
		want:   "fired-after-cancel 0 altered 1",
		broken: true,
	},
	{
		name: "dead",
		tell: func(l *ledger, due time.Time) { take(l, due); l.deadLettered("m") },
		want: "handled 0 cancelled 0 dead 1 redriven 0 | early 0 lost 0",
	},
	{
		name:   "dead and handed out",
		tell:   func(l *ledger, due time.Time) { take(l, due); l.deadLettered("m"); take(l, due) },
		want:   "duplicates 1",
		broken: true,
	},
	{
		name: "dead and redriven",
		tell: func(l *ledger, due time.Time) {
			take(l, due)
			l.deadLettered("m")
			l.redriven("m")
			take(l, due.Add(time.Second))
			l.done("m")
		},
		want: "handled 1 cancelled 0 dead 1 redriven 1 | early 0 lost 0 duplicates 0",
	},
	{
		name:   "lost when it was redriven",
		tell:   func(l *ledger, due time.Time) { take(l, due); l.deadLettered("m"); l.redriven("m") },
		want:   "dead 1 redriven 1 | early 0 lost 1",
		broken: true,
	},
	{
		name:   "still in the store",
		tell:   func(l *ledger, due time.Time) { take(l, due); l.done("m"); l.left(1) },
		want:   "left 1",
		broken: true,
	},
	{
		name: "somebody else's message in the store",
		tell: func(l *ledger, due time.Time) {
			l.deliver("theirs", nil, due)
			take(l, due)
			l.done("m")
			l.left(1)
		},
		want: "left 0",
	},
	{
		name: "a push that failed",
		tell: func(l *ledger, _ time.Time) { l.unpush("m") },
		want: "pushed 0 handled 0 cancelled 0 dead 0 redriven 0 | early 0 lost 0",
	},
	{
		name: "a push that failed and arrived",
		tell: func(l *ledger, due time.Time) { take(l, due); l.unpush("m"); l.done("m") },
		want: "pushed 1 handled 1",
	},
}

func take(l *ledger, at time.Time) { deliver(l, "b", at) }

// deliver sets the clock, which goes on by a microsecond at each look.
func deliver(l *ledger, body string, at time.Time) delivery {
	setClock(l, at)
	return l.deliver("m", []byte(body), at)
}

func setClock(l *ledger, at time.Time) {
	l.now = func() time.Time { at = at.Add(time.Microsecond); return at }
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	for _, c := range verdicts {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLedger()
			due := time.Now().Add(-time.Minute)
			setClock(l, due.Add(-time.Second))
			l.push("m", []byte("b"), due)
			c.tell(l, due)
			sum, lost := l.close(true)
			if got := sum.String(); !strings.Contains(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if sum.broken() != c.broken {
				t.Errorf("broken: got %v, want %v", sum.broken(), c.broken)
			}
			if len(lost) != sum.lost {
				t.Errorf("names %q for %d lost messages", lost, sum.lost)
			}
		})
	}
}

func TestBreachesSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	due := time.Date(2030, 1, 1, 12, 0, 0, 0, time.Local)
	l := newLedger()
	l.began = due
	setClock(l, due.Add(-time.Second))
	l.push("m", []byte("b"), due)
	l.cancelled("m")
	got := deliver(l, "B", due.Add(-2*time.Millisecond)).breaches
	want := []string{
		"early: it came 2ms early: it was due at 12:00:00.000000 and came at 11:59:59.998000",
		"altered: it came with another body, headers or id than it was pushed with",
		"fired-after-cancel: it came at 11:59:59.998000 though its cancel had succeeded at 11:59:59.000002",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestRunCutShortLosesNothing(t *testing.T) {
	t.Parallel()
	l := newLedger()
	l.push("m", nil, time.Now())
	if sum, lost := l.close(false); sum.broken() || lost != nil {
		t.Errorf("got %v and %q, want nothing lost", &sum, lost)
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	t.Run("ends when all is settled", func(t *testing.T) {
		t.Parallel()
		l := newLedger()
		l.push("m", []byte("b"), time.Now())
		go l.done("m")
		if err := l.wait(t.Context(), time.Hour); err != nil {
			t.Error(err)
		}
	})
	t.Run("ends when patience does", func(t *testing.T) {
		t.Parallel()
		l := newLedger()
		due := time.Now().Add(50 * time.Millisecond)
		l.push("m", []byte("b"), due)
		if err := l.wait(t.Context(), 10*time.Millisecond); err != nil {
			t.Error(err)
		}
		if early := time.Until(due.Add(10 * time.Millisecond)); early > 0 {
			t.Errorf("ended %v too early", early)
		}
	})
	t.Run("watches what was cancelled", func(t *testing.T) {
		t.Parallel()
		l := newLedger()
		due := time.Now().Add(50 * time.Millisecond)
		l.push("m", []byte("b"), due)
		l.cancelled("m")
		if err := l.wait(t.Context(), time.Hour); err != nil {
			t.Error(err)
		}
		if time.Now().Before(due) {
			t.Error("ended before the cancelled message could fire")
		}
	})
}
