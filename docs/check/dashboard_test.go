package check

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// A dashboard is what matters here of Grafana's.
type dashboard struct {
	Title         string
	UID           string
	SchemaVersion int
	Templating    struct{ List []variable }
	Panels        []panel
}

type variable struct {
	Name  string
	Type  string
	Query json.RawMessage // text or an object, by the type
}

type panel struct {
	ID      int
	Title   string
	Type    string
	GridPos place
	Targets []struct{ Expr, LegendFormat, RefID string }

	Datasource  struct{ Type, UID string }
	Description string
}

type place struct{ H, W, X, Y int }

func (p place) overlaps(q place) bool {
	return p.X < q.X+q.W && q.X < p.X+p.W && p.Y < q.Y+q.H && q.Y < p.Y+p.H
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	raw, err := os.ReadFile("../grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDashboard(t *testing.T) {
	c := newCatalogue(t)
	d := readDashboard(t)
	if d.Title == "" || d.UID == "" || d.SchemaVersion < 39 || len(d.Panels) == 0 {
		t.Errorf("dashboard %q, uid %q, schema %d, %d panels", d.Title, d.UID, d.SchemaVersion, len(d.Panels))
	}
	for i, p := range d.Panels {
		t.Run(p.Title, func(t *testing.T) { p.check(t, c) })
		for _, q := range d.Panels[:i] {
			if p.ID == q.ID || p.GridPos.overlaps(q.GridPos) {
				t.Errorf("panels %q and %q have one id, or overlap", p.Title, q.Title)
			}
		}
	}
}

func (p panel) check(t *testing.T, c *catalogue) {
	if p.Title == "" || p.Description == "" || p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
		t.Errorf("panel %+v lacks a title, a description, the data source or a target", p)
	}
	if g := p.GridPos; g.W <= 0 || g.H <= 0 || g.X < 0 || g.X+g.W > 24 {
		t.Errorf("place %+v is not on the grid", g)
	}
	for _, target := range p.Targets {
		if err := c.check(substituted(t, target.Expr)); err != nil {
			t.Errorf("%s: %v", target.Expr, err)
		}
		for _, label := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(target.LegendFormat, -1) {
			if !strings.Contains(target.Expr, label[1]) {
				t.Errorf("legend %q shows the label %s, which the expression drops", target.LegendFormat, label[1])
			}
		}
	}
}

// substituted puts values for the variables, as Grafana does.
func substituted(t *testing.T, expr string) string {
	t.Helper()
	expr = strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h", "$queue", "orders").Replace(expr)
	if strings.Contains(expr, "$") {
		t.Errorf("%s has an unknown variable", expr)
	}
	return expr
}

var labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)

func TestDashboardVariables(t *testing.T) {
	c := newCatalogue(t)
	types := make(map[string]string)
	for _, v := range readDashboard(t).Templating.List {
		types[v.Name] = v.Type
		if v.Type != "query" {
			continue
		}
		var query struct{ Query string }
		if err := json.Unmarshal(v.Query, &query); err != nil {
			t.Fatal(err)
		}
		parts := labelValues.FindStringSubmatch(query.Query)
		if parts == nil {
			t.Fatalf("query %q is no label_values", query.Query)
		}
		if err := c.check("sum by (" + parts[2] + ") (" + parts[1] + ")"); err != nil {
			t.Errorf("variable %s: %v", v.Name, err)
		}
	}
	if types["datasource"] != "datasource" || types["queue"] != "query" {
		t.Errorf("variables %v, want the data source and the queue", types)
	}
}
