package check

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"
)

// A ruleFile is what Prometheus reads of a file of alert rules.
type ruleFile struct {
	Groups []struct {
		Name  string
		Rules []rule
	}
}

type rule struct {
	Alert       string
	Expr        string
	For         time.Duration
	Labels      map[string]string
	Annotations map[string]string
}

var usedLabel = regexp.MustCompile(`\$labels\.(\w+)`)

func TestAlerts(t *testing.T) {
	c := newCatalogue(t)
	seen := make(map[string]bool)
	for _, group := range readAlerts(t).Groups {
		for _, r := range group.Rules {
			t.Run(r.Alert, func(t *testing.T) { r.check(t, c) })
			if seen[r.Alert] {
				t.Errorf("two rules are %s", r.Alert)
			}
			seen[r.Alert] = true
		}
	}
	if len(seen) == 0 {
		t.Error("no rules")
	}
}

func readAlerts(t *testing.T) (file ruleFile) {
	t.Helper()
	raw, err := os.ReadFile("../alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d := yaml.NewDecoder(bytes.NewReader(raw))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil {
		t.Fatal(err)
	}
	return file
}

// check wants a rule that works, and tells who is woken what to look at.
func (r rule) check(t *testing.T, c *catalogue) {
	if err := c.check(r.Expr); err != nil {
		t.Errorf("%s: %v", r.Expr, err)
	}
	if r.Alert == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
		t.Errorf("rule %+v lacks a name, a severity, a summary or a description", r)
	}
	for _, text := range r.Annotations {
		for _, label := range usedLabel.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(r.Expr, label[1]) {
				t.Errorf("%q uses the label %s, which the expression drops", text, label[1])
			}
		}
	}
}
