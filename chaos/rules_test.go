package chaos_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/delayq/delayq/internal/judge"
)

const guarantees = "../docs/guarantees.md"

// TestDocsListRules keeps the table of rules in the docs true, and every promise in it.
func TestDocsListRules(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(guarantees)
	must(t, err)
	const mark = "-chaos.update -->\n"
	before, rest, ok := strings.Cut(string(raw), mark)
	_, after, ok2 := strings.Cut(rest, "<!-- end of rules -->")
	if !ok || !ok2 {
		t.Fatalf("%s has lost the marks around its table of rules", guarantees)
	}
	want := before + mark + rulesTable() + "<!-- end of rules -->" + after
	if *updateFlag {
		must(t, os.WriteFile(guarantees, []byte(want), 0o644))
	} else if want != string(raw) {
		t.Errorf("%s does not list the rules as they are; run this test with -chaos.update", guarantees)
	}
}

// beyond is what of a promise no history tells, and only the conformance suite proves.
var beyond = map[int]string{
	8:  "that what a dead worker held comes again within the sweep",
	10: "that no goroutine is left",
	11: "that a handler's lease is renewed while it lives",
}

func rulesTable() string {
	var b strings.Builder
	b.WriteString("\n| promise | rule | what a run is held against | broken variants that it has to find | left to the checks |\n|---|---|---|---|---|\n")
	for promise := 1; promise <= 15; promise++ {
		for _, r := range judge.Rules() {
			if slices.Contains(r.Invariants, promise) {
				fmt.Fprintf(&b, "| %d | `%s` | %s | %s | %s |\n", promise, r.Name, r.Says, variants(r.Name), beyond[promise])
			}
		}
	}
	b.WriteString("\n")
	return b.String()
}

// variants tells how many there are. Poison needs processes to kill, and what the rule does then has a test of its own.
func variants(rule string) string {
	n := 0
	for _, m := range mutants() {
		if m.Finds == rule {
			n++
		}
	}
	if n == 0 {
		return "none; histories by hand"
	}
	return strconv.Itoa(n)
}

// TestEveryPromiseHasARule looks through the list.
func TestEveryPromiseHasARule(t *testing.T) {
	t.Parallel()
	for promise := 1; promise <= 15; promise++ {
		if !slices.ContainsFunc(judge.Rules(), func(r judge.Rule) bool { return slices.Contains(r.Invariants, promise) }) {
			t.Errorf("no rule is held against promise %d", promise)
		}
	}
}
