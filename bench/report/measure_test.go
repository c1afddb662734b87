package main

import (
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/delayq/delayq/bench/internal/raw"
)

const said = `goos: linux
goarch: amd64
pkg: example.com/a
cpu: some
redis: 7.0.15
github.com/hibiken/asynq: v0.26.0
BenchmarkPush/single-2         	     100	    1500 ns/op	   2.5 msgs/s	      64 B/op
    push_test.go:10: a log line: of no interest
BenchmarkFill/pending=1000-2   	       1	         0.5 late-p99-ms
--- BENCH: BenchmarkFill/pending=1000-2
BenchmarkAlone 	       1	         7 early/op
PASS
ok  	example.com/a	1.2s
`

func TestParse(t *testing.T) {
	results, versions, err := parse(strings.NewReader(said))
	want := []raw.Result{
		{Benchmark: "BenchmarkPush/single", Metrics: map[string]float64{"ns/op": 1500, "msgs/s": 2.5, "B/op": 64}},
		{Benchmark: "BenchmarkFill/pending=1000", Metrics: map[string]float64{"late-p99-ms": 0.5}},
		{Benchmark: "BenchmarkAlone", Metrics: map[string]float64{"early/op": 7}},
	}
	if err != nil || !reflect.DeepEqual(results, want) {
		t.Errorf("%+v, %v", results, err)
	}
	if want := []raw.Version{{Name: "redis", Version: "7.0.15"}, {Name: "github.com/hibiken/asynq", Version: "v0.26.0"}}; !reflect.DeepEqual(versions, want) {
		t.Errorf("%+v", versions)
	}
}

// begin has a module with one benchmark in the place of the repository.
func begin(t *testing.T, trial bool, benchmark string) measuring {
	t.Helper()
	root := t.TempDir()
	source := "package a\n\nimport \"testing\"\n\nfunc BenchmarkA(b *testing.B) {\n" + benchmark + "\n}\n"
	for name, text := range map[string]string{"go.mod": "module a\n\ngo 1.25\n", "a_test.go": source} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return measuring{&raw.File{Trial: trial}, nil, root, t.TempDir(), io.Discard}
}

func TestRunIsSavedWithItsOutput(t *testing.T) {
	m := begin(t, true, "if !testing.Short() { b.Error(\"this is no trial\") }\nb.ReportMetric(3, \"msgs/s\")")
	if err := m.run(t.Context(), suite{".", "^BenchmarkA$", "1x", "1m"}); err != nil {
		t.Fatal(err)
	}
	if v, ok := m.file.Metric("BenchmarkA", "msgs/s"); v != 3 || !ok {
		t.Errorf("%+v", m.file)
	}
	const want = "go test -run '^$' -bench '^BenchmarkA$' -benchtime 1x -timeout 1m -short ."
	if r := m.file.Runs[0]; r.Failed || r.Dir != "." || r.Command != want || failures(m.file) != nil {
		t.Errorf("%+v", r)
	}
}

func TestFailureIsSavedAndReported(t *testing.T) {
	m := begin(t, false, `b.Fatal("a promise is broken")`)
	if err := m.run(t.Context(), suite{".", ".", "1x", "1m"}); err != nil {
		t.Fatal(err)
	}
	if r := m.file.Runs[0]; !r.Failed || !strings.Contains(strings.Join(r.Output, "\n"), "a promise is broken") {
		t.Errorf("%+v", r)
	}
	if err := failures(m.file); err == nil {
		t.Error("nothing is reported")
	}
}

func TestRunIsMeasuredAgain(t *testing.T) {
	m := begin(t, false, `b.ReportMetric(3, "msgs/s")`)
	m.file.Replace(raw.Run{Dir: ".", Command: "other"}, []raw.Result{{Benchmark: "BenchmarkOther", Metrics: map[string]float64{"msgs/s": 1}}}, nil)
	for _, again := range []*raw.Machine{nil, {Commit: "later"}} {
		m.again = again
		if err := m.run(t.Context(), suite{".", "^BenchmarkA$", "1x", "1m"}); err != nil {
			t.Fatal(err)
		}
	}
	if rs := m.file.Runs; len(rs) != 2 || rs[0].Again != nil || rs[1].Again == nil || rs[1].Again.Commit != "later" {
		t.Errorf("%+v", rs)
	}
	if len(m.file.Results) != 2 {
		t.Errorf("%+v", m.file.Results)
	}
	page, _ := mustRender(t, m.file)
	if !strings.Contains(page, "| later | 0.00 |") {
		t.Error("the page does not say that a part was measured later")
	}
}

func TestOnlySomeSuites(t *testing.T) {
	for only, want := range map[string]int{"": len(full), "^bench/peers: .*Drain": 1, "Rabbit": 1} {
		if found, err := suitesOf(false, regexp.MustCompile(only)); err != nil || len(found) != want {
			t.Errorf("%q: %d suites, %v; want %d", only, len(found), err, want)
		}
	}
	if _, err := suitesOf(false, regexp.MustCompile("Nothing")); err == nil || !strings.Contains(err.Error(), `"Nothing" matches none`) {
		t.Error(err)
	}
}

// All benchmarks of the peers are in the report.
func TestReportHasAllPeers(t *testing.T) {
	files, err := filepath.Glob("../peers/*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Benchmark\w+)\(`).FindAllSubmatch(text, -1) {
			name := string(m[1])
			if !slices.ContainsFunc(full, func(s suite) bool {
				return s.dir == "bench/peers" && selects(s.pattern, name)
			}) {
				t.Errorf("%s is in no run of the report", name)
			}
		}
	}
}

func TestMachineIsDescribed(t *testing.T) {
	m := describe(t.Context(), "../..")
	if m.Cores < 1 || m.Date.IsZero() || !strings.Contains(m.OS, "/") || m.Versions[0].Name != "go" {
		t.Errorf("%+v", m)
	}
}
