// Package raw keeps what benchmarks measured in more detail than a line of metrics has room for:
// the whole distribution of lateness, and when the messages of a burst arrived. The report draws
// its pictures from it.
//
// Nothing is kept unless the environment variable DELAYQ_BENCH_RAW names a directory. Each process
// that runs benchmarks appends to a file of its own there, one JSON object a line. A benchmark
// function that runs several times, with a growing b.N or by -count, writes several lines under one
// name and side, and the last one counts.
package raw

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// DirEnv names the directory to write to.
const DirEnv = "DELAYQ_BENCH_RAW"

// A Record is the measurement of one side of one benchmark: lateness or arrivals.
type Record struct {
	Benchmark string        `json:"benchmark"` // as in the line that go test prints, without the number of processors
	Side      string        `json:"side"`      // "" where the name of the benchmark says it
	Lateness  *Distribution `json:"lateness,omitempty"`
	Arrivals  *Timeline     `json:"arrivals,omitempty"`
}

// Lateness records how long after its intended due time each message arrived, over all messages,
// negative for early ones. Call it once a benchmark and side, with the values of all rounds. It
// does not change late.
func Lateness(tb testing.TB, side string, late []time.Duration) {
	tb.Helper()
	write(tb, Record{Side: side, Lateness: distribute(late)})
}

// Arrivals keeps how many messages of one burst arrived when, as times after the instant at which
// all of them were due, negative for early ones. Call it with one burst of the largest size, not
// with several in one. It does not change afterDue.
func Arrivals(tb testing.TB, side string, afterDue []time.Duration) {
	tb.Helper()
	write(tb, Record{Side: side, Arrivals: slice(afterDue)})
}

func write(tb testing.TB, r Record) {
	tb.Helper()
	dir := os.Getenv(DirEnv)
	if dir == "" {
		return
	}
	r.Benchmark = tb.Name()
	if err := appendTo(filepath.Join(dir, fileName()), r); err != nil {
		tb.Fatalf("keeping raw data: %v", err)
	}
}

// fileName is one that no other process uses at the same time.
func fileName() string { return fmt.Sprintf("%s-%d.jsonl", filepath.Base(os.Args[0]), os.Getpid()) }

func appendTo(path string, r Record) (err error) {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
