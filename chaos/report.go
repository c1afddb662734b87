package chaos

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/delayq/delayq/internal/judge"
)

// Report is the result of one test run.
type Report struct {
	Backend string
	Seed    uint64
	For     time.Duration
	Verdict judge.Verdict
	Faults  map[string]Tally
}

// Tally counts a kind of fault.
type Tally struct{ Strikes, Effect int }

// TallyOf counts the faults of a history that had an effect.
func TallyOf(ws []judge.Window) map[string]Tally {
	all := make(map[string]Tally)
	for _, w := range ws {
		if w.Effect == 0 {
			continue
		}
		t := all[w.Kind]
		t.Strikes++
		t.Effect += w.Effect
		all[w.Kind] = t
	}
	return all
}

// Strikes counts the injections of all reports.
func Strikes(rs []Report) (n int) {
	for _, r := range rs {
		for _, t := range r.Faults {
			n += t.Strikes
		}
	}
	return n
}

// Messages counts those of all reports.
func Messages(rs []Report) (n int) {
	for _, r := range rs {
		n += r.Verdict.Counts.Messages
	}
	return n
}

// WriteReports writes a table of runs, and one of the faults that each was put through.
func WriteReports(w io.Writer, rs []Report) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	row(t, "run", "messages", "pushed", "unclear", "deliveries", "redelivered", "expiry", "nack", "redriven", "break", "copies", "unseen", "indeterminate",
		"linearizable", "undecided", "undone", "lost by it", "early", "lost", "unexpected", "other", "latest")
	for _, r := range rs {
		c := r.Verdict.Counts
		row(t, r.Backend, c.Messages, c.Pushed, c.Unclear, c.Received, c.Redelivered, c.Expiries, c.Nacks, c.Redriven, c.Breaks, c.Copies, c.Unseen, c.Indeterminate,
			c.Linearizable, c.Undecided, c.Undone, c.UndoneLost, r.broken("early"), r.broken("lost"), r.broken("unexpected"), r.others(),
			time.Duration(c.LatestDelivery).Round(time.Millisecond))
	}
	row(t, "sum", Messages(rs))
	if err := t.Flush(); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return writeFaults(w, rs)
}

func row(w io.Writer, cells ...any) {
	for _, c := range cells {
		_, _ = fmt.Fprintf(w, "%v\t", c) // Flush tells of failures
	}
	_, _ = fmt.Fprintln(w)
}

func (r Report) broken(rule string) (n int) {
	for _, v := range r.Verdict.Violations {
		if v.Rule == rule {
			n++
		}
	}
	return n
}

func (r Report) others() int {
	return len(r.Verdict.Violations) - r.broken("early") - r.broken("lost") - r.broken("unexpected")
}

// writeFaults has a row for each kind and a column for each run: how often it struck, and what that did.
func writeFaults(w io.Writer, rs []Report) error {
	kinds := make(map[string]int)
	for _, r := range rs {
		for kind, t := range r.Faults {
			kinds[kind] += t.Strikes
		}
	}
	names := make([]string, 0, len(kinds))
	for kind := range kinds {
		names = append(names, kind)
	}
	slices.Sort(names)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	row(t, append([]any{"fault (times: effect)"}, each(rs, func(r Report) any { return r.Backend })...)...)
	for _, kind := range names {
		row(t, append([]any{kind}, each(rs, func(r Report) any { return r.Faults[kind] })...)...)
	}
	row(t, append([]any{"sum"}, each(rs, func(r Report) any { return Strikes([]Report{r}) })...)...)
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d faults struck\n", Strikes(rs))
	return err
}

// each maps a slice.
func each[T, R any](from []T, f func(T) R) []R {
	to := make([]R, len(from))
	for i, one := range from {
		to[i] = f(one)
	}
	return to
}

func (t Tally) String() string {
	if t.Strikes == 0 {
		return "-"
	}
	return fmt.Sprintf("%d: %d", t.Strikes, t.Effect)
}
