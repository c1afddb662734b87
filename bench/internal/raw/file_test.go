package raw_test

import (
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/delayq/delayq/bench/internal/raw"
)

func TestAFileComesBackAsItWas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "raw.json")
	saved := &raw.File{
		Machine: raw.Machine{Date: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Cores: 2, Load: 0.25, Versions: []raw.Version{{Name: "Go", Version: "1.25"}}},
		Trial:   true,
		Runs:    []raw.Run{{Dir: "bench", Command: "go test", Seconds: 1.5, Output: []string{"PASS", "a \"quoted\" line"}}},
		Results: []raw.Result{{Benchmark: "BenchmarkA/b=1", Metrics: map[string]float64{"ns/op": 1}}, {Benchmark: "BenchmarkB", Metrics: map[string]float64{"x": 2}}},
		Records: []raw.Record{{Benchmark: "BenchmarkA/b=1", Side: "go", Lateness: &raw.Distribution{Messages: 1, Points: []raw.Point{{Share: 1, Late: 2}}}}},
	}
	if err := saved.Save(path); err != nil {
		t.Fatal(err)
	}
	loaded, err := raw.Load(path)
	if err != nil || !reflect.DeepEqual(loaded, saved) {
		t.Errorf("%+v, %v", loaded, err)
	}
}

func TestMetric(t *testing.T) {
	f := &raw.File{Results: []raw.Result{
		{Benchmark: "BenchmarkA", Metrics: map[string]float64{"ns/op": 1}},
		{Benchmark: "BenchmarkA", Metrics: map[string]float64{"ns/op": 2}},
	}}
	if v, ok := f.Metric("BenchmarkA", "ns/op"); v != 2 || !ok {
		t.Errorf("%v, %v", v, ok)
	}
	if v, ok := f.Metric("BenchmarkA", "B/op"); ok {
		t.Errorf("%v", v)
	}
}
