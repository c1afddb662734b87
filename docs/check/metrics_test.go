package check

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/otlptranslator"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// A catalogue is the metrics as Prometheus has them, each with its labels.
type catalogue struct {
	page    string
	metrics map[string][]string
}

// nameLabel is the label that is a metric's name.
const nameLabel = "__name__"

var (
	kinds = map[string]otlptranslator.MetricType{
		"counter":         otlptranslator.MetricTypeMonotonicCounter,
		"up-down counter": otlptranslator.MetricTypeNonMonotonicCounter,
		"gauge":           otlptranslator.MetricTypeGauge,
		"histogram":       otlptranslator.MetricTypeHistogram,
	}

	// What all metrics have: their own, and what Prometheus adds to each target.
	common = []string{"messaging_system", "messaging_destination_name", "delayq_backend", "job", "instance"}

	tableRow = regexp.MustCompile("(?m)^\\| `([a-z._]+)` \\| ([a-z-]+(?: counter)?) \\| `([a-z{}]+)` \\|([^|]*)\\|")
	quoted   = regexp.MustCompile("`([a-z._]+)`")
)

func newCatalogue(t *testing.T) *catalogue {
	t.Helper()
	page, err := os.ReadFile("../observability.md")
	if err != nil {
		t.Fatal(err)
	}
	c := &catalogue{page: string(page), metrics: make(map[string][]string)}
	for _, row := range tableRow.FindAllStringSubmatch(c.page, -1) {
		c.add(t, row[1], row[2], row[3], row[4])
	}
	if len(c.metrics) < 10 {
		t.Fatalf("docs/observability.md has only the metrics %v", c.metrics)
	}
	return c
}

// add enters a row of the table by the rules of OpenTelemetry for Prometheus.
func (c *catalogue) add(t *testing.T, name, kind, unit, attributes string) {
	t.Helper()
	namer := otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	metric, err := namer.Build(otlptranslator.Metric{Name: name, Unit: unit, Type: kinds[kind]})
	if err != nil {
		t.Fatal(err)
	}
	names := slices.Clone(common)
	for _, attribute := range quoted.FindAllStringSubmatch(attributes, -1) {
		label, err := (&otlptranslator.LabelNamer{}).Build(attribute[1])
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, label)
	}
	if kind != "histogram" {
		c.metrics[metric] = names
		return
	}
	c.metrics[metric+"_sum"], c.metrics[metric+"_count"] = names, names
	c.metrics[metric+"_bucket"] = append(slices.Clone(names), "le")
}

// check parses an expression and wants every metric, label and value in it to exist.
func (c *catalogue) check(expr string) error {
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		return err
	}
	wrong := []error{errors.New("it selects nothing")}
	parser.Inspect(parsed, func(node parser.Node, path []parser.Node) error {
		if s, ok := node.(*parser.VectorSelector); ok {
			wrong[0] = nil
			wrong = append(wrong, c.checkSelector(s, path))
		}
		return nil
	})
	return errors.Join(wrong...)
}

// checkSelector looks at a selector, and at what is kept of its labels on the way up.
func (c *catalogue) checkSelector(s *parser.VectorSelector, path []parser.Node) (wrong error) {
	kept := keptBy(path)
	for _, m := range s.LabelMatchers {
		if m.Name != nameLabel {
			kept = append(kept, m.Name)
			wrong = errors.Join(wrong, c.checkValues(m))
		}
	}
	for _, name := range namesOf(s) {
		has, ok := c.metrics[name]
		if !ok {
			wrong = errors.Join(wrong, fmt.Errorf("%s: there is no metric %q", s, name))
			continue
		}
		for _, label := range kept {
			if !slices.Contains(has, label) {
				wrong = errors.Join(wrong, fmt.Errorf("%s: metric %s has no label %s, only %q", s, name, label, has))
			}
		}
	}
	return wrong
}

// namesOf returns the metrics that a selector may select.
func namesOf(s *parser.VectorSelector) []string {
	for _, m := range s.LabelMatchers {
		if m.Name == nameLabel {
			return strings.Split(m.Value, "|")
		}
	}
	return []string{""}
}

func keptBy(path []parser.Node) (names []string) {
	for _, node := range path {
		switch node := node.(type) {
		case *parser.AggregateExpr:
			names = append(names, node.Grouping...)
		case *parser.BinaryExpr:
			if node.VectorMatching != nil {
				names = append(names, node.VectorMatching.MatchingLabels...)
			}
		}
	}
	return names
}

// checkValues wants a value that is matched to stand in the page. The queue's name is the reader's
// own.
func (c *catalogue) checkValues(m *labels.Matcher) error {
	if m.Name == "messaging_destination_name" || m.Name == "delayq_redelivered" {
		return nil
	}
	for _, value := range strings.Split(m.Value, "|") {
		if value != "" && !strings.Contains(c.page, "`"+value+"`") {
			return fmt.Errorf("%s: docs/observability.md has no %q", m, value)
		}
	}
	return nil
}

// The check finds what is wrong.
func TestCheckBites(t *testing.T) {
	c := newCatalogue(t)
	for _, expr := range []string{
		`sum(rate(delayq_nothing_total[5m]))`,
		`rate(delayq_failures_total{no_label="x"}[5m])`,
		`rate(delayq_failures_total{error_type="no_such_type"}[5m])`,
		`sum by (le) (rate(delayq_lateness_seconds_count[5m]))`,
		`sum by (error_type) (delayq_messages)`,
		`delayq_workers / on (delayq_state) delayq_messages`,
		`sum(rate(delayq_failures_total[5m])`,
		`{delayq_state="ready"}`,
		`1 > 0`,
	} {
		if err := c.check(expr); err == nil {
			t.Errorf("%s passes", expr)
		}
	}
}
