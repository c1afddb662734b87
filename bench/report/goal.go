package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/delayq/delayq/bench/internal/raw"
	"github.com/delayq/delayq/bench/report/chart"
)

// A goal is a row of the table at the top of the page.
type goal struct {
	what  string
	value expression
	limit limit
	unit  string

	dir, pattern, benchtime string // the command to reproduce it

	// long goals need a run in full.
	long bool
}

// A limit is kept or not.
type limit struct {
	sign string
	than expression
}

func atMost(e expression) limit  { return limit{"≤", e} }
func atLeast(e expression) limit { return limit{"≥", e} }

func (l limit) kept(value, than float64) bool {
	if l.sign == "≤" {
		return value <= than
	}
	return value >= than
}

// A verdict on a goal is text.
type verdict struct{ What, Goal, Measured, Met, Command string }

func (g goal) judge(f *raw.File) verdict {
	v := verdict{What: g.what, Goal: "–", Measured: "–", Met: "not measured", Command: g.command()}
	than, limited := g.limit.than.in(f)
	if limited {
		v.Goal = g.limit.sign + " " + g.write(than)
	}
	value, measured := g.value.in(f)
	if measured {
		v.Measured = g.write(value)
	}
	switch {
	case !limited || !measured:
	case g.limit.kept(value, than):
		v.Met = "met"
	default:
		v.Met = "**not met**"
	}
	return v
}

func (g goal) write(v float64) string { return strings.TrimSpace(chart.Number(v) + " " + g.unit) }

// command is the command to type at the root of the repository.
func (g goal) command() string {
	run := []string{"test", "-run", "^$", "-bench", g.pattern, "-benchtime", g.benchtime}
	if g.dir == "bench" {
		return command(append(run, "./bench"))
	}
	return "cd " + g.dir + " && " + command(append(run, "-timeout", "30m"))
}

// reads are the metrics that a goal needs.
func (g goal) reads() []metric { return slices.Concat(g.value.reads, g.limit.than.reads) }

// A metric is a number on a line that a benchmark prints.
type metric struct{ benchmark, unit string }

func (m metric) String() string { return m.unit + " of " + m.benchmark }

// An expression is a number that follows from metrics, where all of them were measured.
type expression struct {
	reads []metric
	of    func(values []float64) float64
}

func (e expression) in(f *raw.File) (value float64, measured bool) {
	values := make([]float64, len(e.reads))
	for i, m := range e.reads {
		v, ok := f.Metric(m.benchmark, m.unit)
		if !ok {
			return 0, false
		}
		values[i] = v
	}
	return e.of(values), true
}

func number(n float64) expression { return expression{of: func([]float64) float64 { return n }} }

func at(benchmark, unit string) expression {
	return expression{[]metric{{benchmark, unit}}, func(v []float64) float64 { return v[0] }}
}

func times(n float64, e expression) expression {
	return expression{e.reads, func(v []float64) float64 { return n * e.of(v) }}
}

func greatest(es ...expression) expression {
	return join(es, slices.Max[[]float64])
}

func sum(a, b expression) expression {
	return join([]expression{a, b}, func(v []float64) float64 { return v[0] + v[1] })
}

func ratio(a, b expression) expression {
	return join([]expression{a, b}, func(v []float64) float64 { return v[0] / v[1] })
}

func join(es []expression, of func([]float64) float64) expression {
	var reads []metric
	for _, e := range es {
		reads = append(reads, e.reads...)
	}
	return expression{reads, func(values []float64) float64 {
		parts := make([]float64, len(es))
		for i, e := range es {
			parts[i], values = e.of(values[:len(e.reads)]), values[len(e.reads):]
		}
		return of(parts)
	}}
}

// missing are the metrics that goals need and results lack.
func missing(goals []goal, results []raw.Result) (errs []error) {
	f := &raw.File{Results: results}
	for _, g := range goals {
		for _, m := range g.reads() {
			if _, ok := f.Metric(m.benchmark, m.unit); !ok {
				errs = append(errs, fmt.Errorf("%s: no benchmark says %v", g.what, m))
			}
		}
	}
	return errs
}
