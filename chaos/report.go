package chaos

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/delayq/delayq/internal/judge"
)

// Report is the result of one test run.
type Report struct {
	Backend string
	Verdict judge.Verdict
	Faults  map[string]Tally
}

// Tally counts a kind of fault.
type Tally struct{ Strikes, Effect int }

func (t Tally) String() string {
	if t.Strikes == 0 {
		return "-"
	}
	return fmt.Sprintf("%d: %d", t.Strikes, t.Effect)
}

// TallyOf counts the faults of a history that had an effect.
func TallyOf(ws []judge.Window) map[string]Tally {
	all := make(map[string]Tally)
	for _, w := range ws {
		if w.Effect > 0 {
			t := all[w.Kind]
			all[w.Kind] = Tally{t.Strikes + 1, t.Effect + w.Effect}
		}
	}
	return all
}

// Strikes counts the injections of a run.
func (r Report) Strikes() (n int) {
	for _, t := range r.Faults {
		n += t.Strikes
	}
	return n
}

// WriteReports writes a table of runs, and a table with the faults of each.
func WriteReports(w io.Writer, rs []Report) error {
	t := newTable(w)
	t.row("run", "messages", "pushed", "unclear", "deliveries", "redelivered", "expiry", "nack", "redriven", "break", "copies", "unseen", "indeterminate",
		"linearizable", "undecided", "undone", "lost by it", "early", "lost", "unexpected", "other", "latest")
	messages := 0
	for _, r := range rs {
		c, broken := r.Verdict.Counts, make(map[string]int)
		for _, v := range r.Verdict.Violations {
			broken[v.Rule]++
		}
		others := len(r.Verdict.Violations) - broken["early"] - broken["lost"] - broken["unexpected"]
		t.row(r.Backend, c.Messages, c.Pushed, c.Unclear, c.Received, c.Redelivered, c.Expiries, c.Nacks, c.Redriven, c.Breaks, c.Copies, c.Unseen, c.Indeterminate,
			c.Linearizable, c.Undecided, c.Undone, c.UndoneLost, broken["early"], broken["lost"], broken["unexpected"], others,
			time.Duration(c.LatestDelivery).Round(time.Millisecond))
		messages += c.Messages
	}
	t.row("sum", messages)
	t.row()
	if err := t.Flush(); err != nil {
		return err
	}
	return writeFaults(w, rs)
}

// writeFaults writes a row for each kind and a column for each run: the injections, and their
// effects.
func writeFaults(w io.Writer, rs []Report) error {
	kinds, strikes := make(map[string]bool), 0
	for _, r := range rs {
		strikes += r.Strikes()
		for kind := range r.Faults {
			kinds[kind] = true
		}
	}
	t := newTable(w)
	row := func(head string, cell func(Report) any) { t.row(append([]any{head}, each(rs, cell)...)...) }
	row("fault (times: effect)", func(r Report) any { return r.Backend })
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		row(kind, func(r Report) any { return r.Faults[kind] })
	}
	row("sum", func(r Report) any { return r.Strikes() })
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d faults struck\n", strikes)
	return err
}

// table aligns columns on the right.
type table struct{ *tabwriter.Writer }

func newTable(w io.Writer) table {
	return table{tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)}
}

func (t table) row(cells ...any) {
	for _, c := range cells {
		_, _ = fmt.Fprintf(t, "%v\t", c) // Flush returns what fails
	}
	_, _ = fmt.Fprintln(t)
}
