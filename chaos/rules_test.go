package chaos

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

// TestDocsListRules keeps the table of rules in the docs true.
func TestDocsListRules(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(guarantees)
	must(t, err)
	const mark, end = "-chaos.update -->\n", "<!-- end of rules -->"
	before, rest, ok := strings.Cut(string(raw), mark)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s lacks the marks around its table of rules", guarantees)
	}
	want := before + mark + rulesTable(t) + end + after
	if *updateFlag {
		must(t, os.WriteFile(guarantees, []byte(want), 0o644))
	} else if want != string(raw) {
		t.Errorf("%s does not list the rules as they are; run this test with -chaos.update", guarantees)
	}
}

// leftToChecks are the parts of promises that no history shows, and only the conformance suite
// proves.
var leftToChecks = map[int]string{
	8:  "that a dead worker's messages come again within the sweep",
	10: "that no goroutine is left",
	11: "that a handler's lease is renewed while it lives",
}

// rulesTable fails for a promise without a rule.
func rulesTable(t *testing.T) string {
	t.Helper()
	broken := make(map[string]int)
	for _, m := range mutants {
		broken[m.rule]++
	}
	var b strings.Builder
	b.WriteString("\n| promise | rule | a run is checked for this | mutants that it has to find | left to the checks |\n|---|---|---|---|---|\n")
	for promise := 1; promise <= 15; promise++ {
		listed := b.Len()
		for _, r := range judge.Rules() {
			if slices.Contains(r.Invariants, promise) {
				variants := "none; histories by hand"
				if n := broken[r.Name]; n > 0 {
					variants = strconv.Itoa(n)
				}
				fmt.Fprintf(&b, "| %d | `%s` | %s | %s | %s |\n", promise, r.Name, r.Says, variants, leftToChecks[promise])
			}
		}
		if b.Len() == listed {
			t.Errorf("promise %d has no rule", promise)
		}
	}
	b.WriteString("\n")
	return b.String()
}
