package conformance_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/delayq/delayq/conformance"
)

const guarantees = "../docs/guarantees.md"

// TestDocsListChecks compares the table of checks in the docs with the checks.
func TestDocsListChecks(t *testing.T) {
	raw, err := os.ReadFile(guarantees)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(raw), "-update -->\n")
	_, after, ok2 := strings.Cut(rest, "<!-- end of checks -->")
	if !ok || !ok2 {
		t.Fatalf("%s has lost the marks around its table of checks", guarantees)
	}
	want := before + "-update -->\n" + checksTable() + "<!-- end of checks -->" + after
	if *update {
		if err := os.WriteFile(guarantees, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(raw) {
		t.Errorf("%s does not list the checks as they are; run this test with -update", guarantees)
	}
}

func checksTable() string {
	var b strings.Builder
	b.WriteString("\n| promise | check | rule |\n|---|---|---|\n")
	for _, c := range conformance.Checks() {
		fmt.Fprintf(&b, "| %d | `%s` | %s |\n", c.Invariant, c.Name, c.Rule)
	}
	b.WriteString("\n")
	return b.String()
}
