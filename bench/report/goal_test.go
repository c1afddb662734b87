package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/delayq/delayq/bench/internal/raw"
)

// benchmarks are the functions in the tests of a directory.
func benchmarks(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in %s: %v", dir, err)
	}
	found := make(map[string]bool)
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Benchmark") {
				found[f.Name.Name] = true
			}
		}
	}
	return found
}

// selects reports whether go test -bench runs a benchmark, or its parent. The patterns have no
// slash within an element.
func selects(pattern, benchmark string) bool {
	elements := strings.Split(pattern, "/")
	for i, name := range strings.Split(benchmark, "/") {
		if i < len(elements) && !regexp.MustCompile(elements[i]).MatchString(name) {
			return false
		}
	}
	return true
}

// make bench-once checks the lines themselves; this test checks what can be known without a run.
func TestGoalsNameBenchmarksThatExist(t *testing.T) {
	for _, g := range goals {
		functions := benchmarks(t, g.dir)
		for _, m := range g.reads() {
			if name, _, _ := strings.Cut(m.benchmark, "/"); !functions[name] {
				t.Errorf("%s: %s has no %s", g.what, g.dir, name)
			}
			if !selects(g.pattern, m.benchmark) {
				t.Errorf("%s: the command does not run %s", g.what, m.benchmark)
			}
		}
	}
}

func TestAFullRunMeasuresEveryGoal(t *testing.T) {
	for _, g := range goals {
		for _, m := range g.reads() {
			runs := false
			for _, s := range full {
				runs = runs || s.dir == g.dir && selects(s.pattern, m.benchmark)
			}
			if !runs {
				t.Errorf("%s: no suite runs %s", g.what, m.benchmark)
			}
		}
	}
}

func TestGoalsFitIntoATable(t *testing.T) {
	for _, g := range goals {
		if strings.ContainsAny(g.what+g.command(), "|\n`") {
			t.Errorf("%s: %s ends its cell", g.what, g.command())
		}
	}
}

func TestGoalsDiffer(t *testing.T) {
	seen := make(map[string]bool)
	for _, g := range goals {
		if seen[g.what] {
			t.Errorf("two goals are called %q", g.what)
		}
		seen[g.what] = true
	}
}

func TestJudge(t *testing.T) {
	a, b := at("BenchmarkA", "ms"), at("BenchmarkB", "ms")
	f := &raw.File{Results: []raw.Result{
		{Benchmark: "BenchmarkA", Metrics: map[string]float64{"ms": 6}}, {Benchmark: "BenchmarkB", Metrics: map[string]float64{"ms": 2}},
	}}
	const met, unmet, unknown = "met", "**not met**", "not measured"
	for name, c := range map[string]struct {
		value                expression
		limit                limit
		goal, measured, meet string
	}{
		"below":        {a, atMost(number(7)), "≤ 7 ms", "6 ms", met},
		"equal":        {a, atMost(number(6)), "≤ 6 ms", "6 ms", met},
		"above":        {a, atMost(number(5)), "≤ 5 ms", "6 ms", unmet},
		"enough":       {a, atLeast(number(5)), "≥ 5 ms", "6 ms", met},
		"too little":   {a, atLeast(number(7)), "≥ 7 ms", "6 ms", unmet},
		"ratio":        {ratio(a, b), atLeast(number(3)), "≥ 3 ms", "3 ms", met},
		"greatest":     {greatest(b, a, b), atMost(number(5)), "≤ 5 ms", "6 ms", unmet},
		"limit varies": {a, atMost(greatest(number(3), sum(times(2, b), b))), "≤ 6 ms", "6 ms", met},
		"not measured": {at("BenchmarkC", "ms"), atMost(number(5)), "≤ 5 ms", "–", unknown},
		"no limit":     {a, atMost(at("BenchmarkC", "ms")), "–", "6 ms", unknown},
		"another unit": {at("BenchmarkA", "s"), atMost(number(5)), "≤ 5 ms", "–", unknown},
	} {
		t.Run(name, func(t *testing.T) {
			v := goal{value: c.value, limit: c.limit, unit: "ms"}.judge(f)
			if v.Goal != c.goal || v.Measured != c.measured || v.Met != c.meet {
				t.Errorf("%+v", v)
			}
		})
	}
}

func TestCheckNamesWhatIsMissing(t *testing.T) {
	var output strings.Builder
	for _, g := range shortGoals() {
		for _, m := range g.reads() {
			output.WriteString(m.benchmark + "-2 \t 1 \t 5 " + m.unit + "\n")
		}
	}
	if err := check(strings.NewReader(output.String())); err != nil {
		t.Error(err)
	}
	less := strings.ReplaceAll(output.String(), "BenchmarkThroughput/", "BenchmarkGone/")
	if err := check(strings.NewReader(less)); err == nil || !strings.Contains(err.Error(), "no benchmark says ns/op of BenchmarkThroughput/") {
		t.Errorf("%v", err)
	}
	if err := check(strings.NewReader("PASS\n")); err == nil {
		t.Error("took no results for enough")
	}
}
