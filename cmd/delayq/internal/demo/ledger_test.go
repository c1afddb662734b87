package demo

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// A story tells a ledger what a queue did with the message "m", pushed with the body "b". Its words
// are names of steps, some of them followed by a time after the due time.
type story string

var steps = map[string]func(l *ledger, due, at time.Time){
	"take":      func(l *ledger, _, at time.Time) { deliver(l, "b", at) },
	"take-B":    func(l *ledger, _, at time.Time) { deliver(l, "B", at) },
	"theirs":    func(l *ledger, _, at time.Time) { l.deliver("theirs", nil, at) },
	"done":      func(l *ledger, _, _ time.Time) { l.done("m") },
	"failed":    func(l *ledger, _, at time.Time) { l.failed("m", at) },
	"died":      func(l *ledger, due, at time.Time) { l.died("m", at.Sub(due)) },
	"cancelled": func(l *ledger, _, _ time.Time) { l.cancelled("m") },
	"dead":      func(l *ledger, _, _ time.Time) { l.deadLettered("m") },
	"redriven":  func(l *ledger, _, _ time.Time) { l.redriven("m") },
	"unpush":    func(l *ledger, _, _ time.Time) { l.unpush("m") },
	"left":      func(l *ledger, _, _ time.Time) { l.left(1) },
}

func (s story) tell(t *testing.T, l *ledger, due time.Time) {
	t.Helper()
	words := strings.Fields(string(s))
	for len(words) > 0 {
		step, at := steps[words[0]], due
		if step == nil {
			t.Fatalf("no step is called %q", words[0])
		}
		words = words[1:]
		if len(words) > 0 {
			if d, err := time.ParseDuration(words[0]); err == nil {
				at, words = due.Add(d), words[1:]
			}
		}
		step(l, due, at)
	}
}

// verdicts have parts of the summary. A queue that has broken no promise is whole.
var verdicts = []struct {
	name  string
	story story
	want  string
	whole bool
}{
	{"in time", "take 1ms done", "pushed 1 handled 1 cancelled 0 dead 0 redriven 0 | early 0 lost 0 duplicates 0 fired-after-cancel 0 altered 0 left 0 | lateness p50 1.0ms p99 1.0ms max 1.0ms", true},
	{"at the very moment", "take done", "early 0 lost 0", true},
	{"a nanosecond early", "take -1ns done", "early 1 lost 0 duplicates 0 fired-after-cancel 0 altered 0 left 0 | lateness p50 - p99 - max -", false},
	{"never", "", "early 0 lost 1 duplicates 0", false},
	{"taken and never handled", "take", "handled 0 cancelled 0 dead 0 redriven 0 | early 0 lost 1", false},
	{"twice", "take done take done", "handled 1 cancelled 0 dead 0 redriven 0 | early 0 lost 0 duplicates 1", false},
	{"by two workers at once", "take take done done", "duplicates 1", false},
	{"again after a failure", "take failed 1s take 1s done", "handled 1 cancelled 0 dead 0 redriven 0 | early 0 lost 0 duplicates 0", true},
	{"too soon after a failure", "take failed 1s take 999999999ns done", "early 1 lost 0 duplicates 0", false},
	{"again after its worker died", "take died 1s take 1s done", "handled 1 cancelled 0 dead 0 redriven 0 | early 0 lost 0 duplicates 0", true},
	{"again while the dead worker's lease lasts", "take died 1s take 999999999ns done", "early 0 lost 0 duplicates 1", false},
	{"thrice for one dead worker", "take died take done take", "early 0 lost 0 duplicates 1", false},
	{"cancelled", "cancelled", "handled 0 cancelled 1 dead 0 redriven 0 | early 0 lost 0", true},
	{"fires after it was cancelled", "cancelled take done", "handled 0 cancelled 1 dead 0 redriven 0 | early 0 lost 0 duplicates 0 fired-after-cancel 1", false},
	{"cancelled in a worker's hands", "take cancelled done", "handled 0 cancelled 1 dead 0 redriven 0 | early 0 lost 0 duplicates 0 fired-after-cancel 1", false},
	{"cancelled while it waits for its second try", "take failed cancelled", "cancelled 1 dead 0 redriven 0 | early 0 lost 0 duplicates 0 fired-after-cancel 0", true},
	{"another body", "take-B done", "fired-after-cancel 0 altered 1", false},
	{"dead", "take dead", "handled 0 cancelled 0 dead 1 redriven 0 | early 0 lost 0", true},
	{"dead and handed out", "take dead take", "duplicates 1", false},
	{"dead and redriven", "take dead redriven take 1s done", "handled 1 cancelled 0 dead 1 redriven 1 | early 0 lost 0 duplicates 0", true},
	{"lost when it was redriven", "take dead redriven", "dead 1 redriven 1 | early 0 lost 1", false},
	{"still in the store", "take done left", "left 1", false},
	{"somebody else's message in the store", "theirs take done left", "left 0", true},
	{"a push that failed", "unpush", "pushed 0 handled 0 cancelled 0 dead 0 redriven 0 | early 0 lost 0", true},
	{"a push that failed and arrived", "take unpush done", "pushed 1 handled 1", true},
}

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
			c.story.tell(t, l, due)
			sum, lost := l.close(true)
			if got := sum.String(); !strings.Contains(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if sum.broken() == c.whole {
				t.Errorf("broken: got %v, want %v", sum.broken(), !c.whole)
			}
			if len(lost) != sum.lost {
				t.Errorf("names %q for %d lost messages", lost, sum.lost)
			}
		})
	}
}

// Stores go by the wall clock. It is set forward by 2 ms while a message waits, which comes when it is due, fails and
// comes again.
func TestWallClockIsSetForward(t *testing.T) {
	t.Parallel()
	due := time.Now()
	l := newLedger()
	setClock(l, due.Add(-time.Second))
	l.push("m", []byte("b"), due)
	came := setForward(due.Add(-time.Millisecond), 2*time.Millisecond)
	if d := deliver(l, "b", came); d.late != time.Millisecond || len(d.breaches) > 0 {
		t.Errorf("got %+v", d)
	}
	again := came.Add(time.Millisecond)
	l.failed("m", again)
	if d := deliver(l, "b", again); d.late != 0 || len(d.breaches) > 0 {
		t.Errorf("got %+v", d)
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
