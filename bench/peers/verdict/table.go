package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/delayq/delayq/conformance"
)

// A judged peer is what the page says of one.
type judged struct {
	Name     string    `json:"name"`
	Versions string    `json:"versions"`
	Made     string    `json:"made"`
	Claims   string    `json:"claims"`
	Ours     bool      `json:"ours,omitempty"`
	Findings []finding `json:"findings"`
}

func (j judged) title() string {
	if j.Ours {
		return "*" + j.Name + "*"
	}
	return j.Name
}

// rules are the promises of docs/guarantees.md, in a word or two.
var rules = []string{
	1: "never early", 2: "never lost", 3: "nothing unexpected", 4: "duplicates have a cause", 5: "leases exclude", 6: "cancel is linearizable",
	7: "order", 8: "redelivery", 9: "poison dies", 10: "stopping is safe", 11: "isolation", 12: "no lost wake-up", 13: "accounting",
	14: "nothing is left behind", 15: "bad input",
}

const pageHead = `# Other queues by the same rules

delayq's conformance suite, run over other queues. Each has an adapter that makes it a backend, over its own client: one that
repairs nothing and makes nothing worse ([bench/peers/verdict](../bench/peers/verdict)). The suite, its rules and its tolerance are those of
[guarantees.md](guarantees.md). This page is written by

    cd bench/peers && go test ./verdict -run TestVerdicts -update -timeout 30m

in real time, on servers that the test starts: Redis, beanstalkd, PostgreSQL, an embedded nats-server.

How to read it:

- **kept**: the check found nothing. In real time and in one run that is less than a proof.
- **broken**: the check found a violation of what the peer's own documentation leads one to expect. Its message is below, with a note on why that is the
  peer and not the adapter.
- **not offered**: the peer has no word for what the check needs, or its documentation says openly that it does something else. That is a difference
  and not a fault: these queues were made for other ends, and most have what delayq lacks.
- **not judged**: the check could not say anything, because of the adapter or of the suite.

A peer's own documented intervals are declared to the suite and so are no lateness: what they cost is measured in bench/peers, not here.
A queue with "rounded up" in its name is the same one used with care: its caller rounds due times up to whole seconds.
`

// page writes all of docs/peers.md.
func page(all []judged) string {
	var b strings.Builder
	b.WriteString(pageHead)
	b.WriteString("\n## The rules\n\n")
	b.WriteString(grid(all, ruleRows()))
	b.WriteString("\nIn brackets: how many checks are broken, of those that were judged; where not all could be judged, on how many of them a kept rule rests.\n" +
		"In italics: delayq's own backends, judged by the same test.\n")
	b.WriteString("\n## What was judged\n\n| | versions | adapter | declared, by its documentation |\n|---|---|---|---|\n")
	for _, j := range all {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", j.title(), j.Versions, j.Made, j.Claims)
	}
	b.WriteString("\n## What is broken\n")
	for _, j := range all {
		b.WriteString(faults(j))
	}
	b.WriteString("\n## What is not offered, and what was not judged\n")
	for _, j := range all {
		b.WriteString(brief(j))
	}
	b.WriteString("\n## Check by check\n\n")
	b.WriteString(grid(all, checkRows()))
	return b.String()
}

// A row of a table sums up some checks.
type row struct {
	label string
	has   func(finding) bool
}

func ruleRows() (rows []row) {
	for n, name := range rules {
		if n > 0 {
			rows = append(rows, row{fmt.Sprintf("%d | %s", n, name), func(f finding) bool { return f.Rule == n }})
		}
	}
	return rows
}

func checkRows() (rows []row) {
	for _, c := range conformance.Checks() {
		rows = append(rows, row{fmt.Sprintf("%d | `%s`", c.Invariant, c.Name), func(f finding) bool { return f.Check == c.Name }})
	}
	return rows
}

func grid(all []judged, rows []row) string {
	var b strings.Builder
	b.WriteString("| | ")
	for _, j := range all {
		b.WriteString(" | " + j.title())
	}
	b.WriteString(" |\n|---|---" + strings.Repeat("|---", len(all)) + "|\n")
	for _, r := range rows {
		b.WriteString("| " + r.label)
		for _, j := range all {
			b.WriteString(" | " + cell(j, r))
		}
		b.WriteString(" |\n")
	}
	return b.String()
}

func cell(j judged, r row) string {
	n := make(map[conformance.Outcome]int)
	total := 0
	for _, f := range j.Findings {
		if r.has(f) {
			n[f.Outcome]++
			total++
		}
	}
	judgedChecks := n[conformance.Broken] + n[conformance.Kept]
	switch {
	case n[conformance.Broken] > 0 && total > 1:
		return fmt.Sprintf("**broken** (%d of %d)", n[conformance.Broken], judgedChecks)
	case n[conformance.Broken] > 0:
		return "**broken**"
	case n[conformance.Kept] == total && total > 0:
		return "kept"
	case n[conformance.Kept] > 0:
		return fmt.Sprintf("kept (%d of %d)", n[conformance.Kept], total)
	case n[conformance.NotOffered] > 0:
		return "not offered"
	default:
		return "not judged"
	}
}

// faults tells what is broken: each note, and the messages that it explains.
func faults(j judged) string {
	var notes []string
	says := make(map[string]string)
	for _, f := range j.Findings {
		if f.Outcome != conformance.Broken {
			continue
		}
		note := strings.TrimSpace(f.Why + " " + f.Issues)
		if says[note] == "" {
			notes = append(notes, note)
		}
		says[note] += fmt.Sprintf("  - %d, `%s`: %s\n", f.Rule, f.Check, quote(f.Says))
	}
	if len(notes) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n### %s\n\n", j.Name)
	for _, note := range notes {
		b.WriteString("- " + note + "\n" + says[note])
	}
	return b.String()
}

// quote keeps what the suite says from being read as Markdown.
func quote(s string) string { return "``" + strings.ReplaceAll(s, "``", "''") + "``" }

// brief tells reasons, each with its checks.
func brief(j judged) string {
	type reason struct {
		of   conformance.Outcome
		text string
	}
	checks := make(map[reason][]string)
	for _, f := range j.Findings {
		if f.Outcome == conformance.NotOffered || f.Outcome == conformance.NotJudged {
			r := reason{f.Outcome, cmp.Or(f.Why, f.Says)}
			checks[r] = append(checks[r], "`"+f.Check+"`")
		}
	}
	if len(checks) == 0 {
		return ""
	}
	var lines []string
	for r, names := range checks {
		lines = append(lines, fmt.Sprintf("- %v, %s: %s\n", r.of, strings.Join(names, ", "), r.text))
	}
	slices.Sort(lines)
	return fmt.Sprintf("\n### %s\n\n%s", j.Name, strings.Join(lines, ""))
}
