package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/delayq/delayq/bench/internal/capacity"
	"github.com/delayq/delayq/bench/internal/raw"
	"github.com/delayq/delayq/bench/report/chart"
)

//go:embed page.md.tmpl
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// calm is the load of a machine that has little else to do.
const calm = 1.5

// A page is the template's data.
type page struct {
	*raw.File
	pictures map[string][]byte
	Verdicts []verdict
	Rows     []row
	Capacity string
}

// render makes the page and its pictures by name.
func render(f *raw.File) (text []byte, pictured map[string][]byte, err error) {
	p := page{File: f, pictures: pictures(f), Rows: rows(f)}
	for _, g := range goals {
		p.Verdicts = append(p.Verdicts, g.judge(f))
	}
	var answer strings.Builder
	capacity.Print(&answer, f, capacity.Defaults)
	p.Capacity = strings.TrimRight(answer.String(), "\n")
	var out bytes.Buffer
	err = pageTemplate.Execute(&out, p)
	return out.Bytes(), p.pictures, err
}

func (p page) Busy() bool { return p.Machine.Load > calm }

func (p page) Memory() string { return fmt.Sprintf("%.0f GiB", float64(p.Machine.Memory)/(1<<30)) }

func (p page) Load() string { return fmt.Sprintf("%.2f", p.Machine.Load) }

func (p page) Date() string { return p.Machine.Date.Format("2 January 2006") }

func (p page) Minutes() string {
	seconds := 0.0
	for _, r := range p.Runs {
		seconds += r.Seconds
	}
	return fmt.Sprintf("%.0f", seconds/60)
}

// Again are the commands that were run again after the rest.
func (p page) Again() (again []raw.Run) {
	for _, r := range p.Runs {
		if r.Again != nil {
			again = append(again, r)
		}
	}
	return again
}

func (p page) Met() (n int) { return p.count("met") }

func (p page) Unmet() (n int) { return p.count("**not met**") }

func (p page) count(met string) (n int) {
	for _, v := range p.Verdicts {
		if v.Met == met {
			n++
		}
	}
	return n
}

// Picture is a link to a picture, if there is one.
func (p page) Picture(name, what string) string {
	if p.pictures[name] == nil {
		return "No picture: this was not measured."
	}
	return fmt.Sprintf("![%s](%s/%s.svg)", what, picturesDir, name)
}

// A row of the table of all sides.
type row struct{ Cells []string }

// columns of the table of all sides.
var columns = []struct {
	benchmark, unit string
	write           func(float64) string
}{
	{latePeers, "late-p50-ms", chart.Number}, {latePeers, "late-p99-ms", chart.Number}, {latePeers, "late-max-ms", chart.Number},
	{latePeers, "early/op", percent},
	{singlePeers, "msgs/s", chart.Number}, {batchPeers, "msgs/s", chart.Number}, {drainPeers, "msgs/s", chart.Number},
	{depthPeers, "B/pending", chart.Number}, {depthPeers, "disk-B/pending", chart.Number},
	{cancelPeers, "us/cancel", chart.Number}, {idlePeers, "trips/s", chart.Number},
	{idlePeers, "cpu-ms/s", chart.Number},
}

func percent(share float64) string { return chart.Number(100*share) + " %" }

func rows(f *raw.File) (all []row) {
	var names []string
	for _, c := range columns {
		for _, r := range sides(f, c.benchmark) {
			if side := strings.TrimPrefix(r.Benchmark, c.benchmark); !slices.Contains(names, side) {
				names = append(names, side)
			}
		}
	}
	for _, side := range names {
		cells := []string{side}
		for _, c := range columns {
			cells = append(cells, cell(f, c.benchmark+side, c.unit, c.write))
		}
		all = append(all, row{cells})
	}
	return all
}

func cell(f *raw.File, benchmark, unit string, write func(float64) string) string {
	if v, ok := f.Metric(benchmark, unit); ok {
		return write(v)
	}
	return "–"
}
