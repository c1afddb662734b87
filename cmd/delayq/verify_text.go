package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/delayq/delayq/cmd/delayq/internal/human"
	"github.com/delayq/delayq/conformance"
)

// show writes the verdicts.
func (c *verifyCommand) show(w io.Writer, v *verification) error {
	if c.JSON {
		return v.document(w)
	}
	return write(w, v.table())
}

func (v *verification) table() string {
	var w strings.Builder
	fmt.Fprintf(&w, "%4s  %-32s  %s\n", "RULE", "CHECK", "VERDICT")
	for _, one := range v.verdicts {
		fmt.Fprintf(&w, "%4d  %-32s  %v\n", one.Check.Invariant, one.Check.Name, one.Outcome())
		explain(&w, one)
	}
	w.WriteString("\n" + v.summary() + "\n")
	if d := v.harness.Skew; d > 0 {
		fmt.Fprintf(&w, "The server's clock may differ from this machine's by %v; that much was let pass where a message is due at a time.\n", d)
	}
	v.remnants(&w)
	return w.String()
}

func (v *verification) summary() string {
	n := v.count()
	return fmt.Sprintf("%s: %d kept, %d broken, %d not offered, %d not judged",
		human.Count(len(v.verdicts), "check"), n[conformance.Kept], n[conformance.Broken], n[conformance.NotOffered], n[conformance.NotJudged])
}

// mostRemnants is how many of them are named.
const mostRemnants = 10

func (v *verification) remnants(w io.Writer) {
	if len(v.left) == 0 {
		return
	}
	_, _ = fmt.Fprintf(w, "Left in the store:\n")
	for _, name := range v.left[:min(len(v.left), mostRemnants)] {
		_, _ = fmt.Fprintf(w, "  %s\n", printable(name))
	}
	if more := len(v.left) - mostRemnants; more > 0 {
		_, _ = fmt.Fprintf(w, "  and %d more with %s in the name\n", more, strings.TrimSuffix(v.prefix, "."))
	}
}

// explain says below a line why the verdict is none of the good ones.
func explain(w *strings.Builder, v conformance.Verdict) {
	text := detail(v)
	if v.Outcome() == conformance.Broken {
		text += "\nthe rule: " + v.Check.Rule
	}
	for paragraph := range strings.Lines(text) {
		for _, line := range folded(printable(strings.TrimSpace(paragraph)), page-6) {
			fmt.Fprintf(w, "      %s\n", line)
		}
	}
}

// detail is a verdict's evidence.
func detail(v conformance.Verdict) string {
	var broken *conformance.Violation
	switch {
	case v.Outcome() == conformance.Broken && errors.As(v.Err, &broken):
		return broken.Detail
	case v.Err != nil:
		return v.Err.Error()
	default:
		return v.Skipped
	}
}

// checkJSON is a verdict.
type checkJSON struct {
	Rule    int    `json:"rule"`
	Check   string `json:"check"`
	Verdict string `json:"verdict"`
	Says    string `json:"says"`
	Detail  string `json:"detail,omitempty"`
}

// verifyJSON is about all checks.
type verifyJSON struct {
	Checks     int      `json:"checks"`
	Kept       int      `json:"kept"`
	Broken     int      `json:"broken"`
	NotOffered int      `json:"not_offered"`
	NotJudged  int      `json:"not_judged"`
	Left       []string `json:"left,omitempty"`
}

func (v *verification) document(w io.Writer) error {
	err := writeLines(w, v.verdicts, func(one conformance.Verdict) checkJSON {
		c := one.Check
		return checkJSON{Rule: c.Invariant, Check: c.Name, Verdict: one.Outcome().String(), Says: c.Rule, Detail: detail(one)}
	})
	if err != nil {
		return err
	}
	n := v.count()
	return writeJSON(w, verifyJSON{
		Checks: len(v.verdicts), Kept: n[conformance.Kept], Broken: n[conformance.Broken],
		NotOffered: n[conformance.NotOffered], NotJudged: n[conformance.NotJudged], Left: v.left,
	})
}
