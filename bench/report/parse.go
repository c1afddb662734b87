package main

import (
	"fmt"
	"io"
	"strconv"

	"golang.org/x/perf/benchfmt"

	"github.com/delayq/delayq/bench/internal/raw"
)

// parse reads the output of go test. Versions are the configuration lines that the benchmarks print
// in addition to those of go test.
func parse(output io.Reader) (results []raw.Result, versions []raw.Version, err error) {
	seen := make(map[string]bool)
	lines := benchfmt.NewReader(output, "go test")
	for lines.Scan() {
		line, ok := lines.Result().(*benchfmt.Result)
		if !ok {
			continue // lines that the reader cannot parse are a log
		}
		results = append(results, result(line))
		for _, c := range line.Config {
			if !c.File || noVersions[c.Key] || seen[c.Key] {
				continue
			}
			seen[c.Key] = true
			versions = append(versions, raw.Version{Name: c.Key, Version: string(c.Value)})
		}
	}
	if err := lines.Err(); err != nil {
		return nil, nil, fmt.Errorf("reading results: %w", err)
	}
	return results, versions, nil
}

// noVersions are other configuration.
var noVersions = map[string]bool{"goos": true, "goarch": true, "pkg": true, "cpu": true, "cores": true, "load": true}

func result(line *benchfmt.Result) raw.Result {
	r := raw.Result{Benchmark: "Benchmark" + bareName(line.Name), Metrics: make(map[string]float64)}
	for _, v := range line.Values {
		if v.OrigUnit != "" {
			r.Metrics[v.OrigUnit] = v.OrigValue
			continue
		}
		r.Metrics[v.Unit] = v.Value
	}
	return r
}

// bareName leaves out the number of processors at the end.
func bareName(name benchfmt.Name) string {
	full := name.String()
	_, parts := name.Parts()
	if len(parts) == 0 {
		return full
	}
	last := string(parts[len(parts)-1])
	if n, err := strconv.Atoi(last); err == nil && n < 0 {
		return full[:len(full)-len(last)]
	}
	return full
}
