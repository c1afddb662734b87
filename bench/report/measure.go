package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/delayq/delayq/bench/internal/raw"
)

// A suite is one call of go test.
type suite struct {
	dir       string // from the root of the repository
	pattern   string
	benchtime string
	timeout   string
}

// stores are the backends with their default settings, one element of a pattern.
const stores = "/^backend=(memory|zsetpoll-script|keyspace|redisson|rabbitmq|sqlite|postgres)$"

// full fits into three quarters of an hour on two cores. Comparisons of one backend's options are left to make
// bench. So are pushes alone, since the benchmarks beside peers and beside a program by hand
// measure pushes too.
var full = []suite{
	{"bench", "^BenchmarkThroughput$/^backend=memory$", "0.5s", "10m"},
	{"bench", "^BenchmarkDepth$/^backend=(memory|zsetpoll-script|keyspace|redisson|sqlite|postgres)$/^due=now$", "3x", "15m"},
	{"bench", "^Benchmark(Idle|Pending)$" + stores, "1x", "15m"},
	{"bench", "^BenchmarkShards$", "1x", "20m"},
	{"bench", "^BenchmarkFootprint$", "5x", "10m"},
	{"bench", "^BenchmarkRedissonBurst$/^release=4.7.0$", "1x", "10m"},
	{"bench", "^BenchmarkRabbit(Push|Drain)$", "1x", "15m"},
	{"bench", "^Benchmark(Postgres|SQLite)(Push|Drain)$", "1x", "15m"},
	{"bench", "^BenchmarkPostgresSnapshot$", "1x", "15m"},
	{"bench/peers", "^Benchmark(Cancel|Depth|Idle)Peers$", "1x", "15m"},
	{"bench/peers", "^BenchmarkDrainPeers$", "1x", "20m"},
	{"bench/peers", "^BenchmarkPushPeers$", "1x", "15m"},
	{"bench/peers", "^BenchmarkLatenessPeers$", "1x", "15m"},
	{"bench", "^Benchmark(Lateness|WakeUp|Burst)$" + stores, "1x", "10m"},
}

// short shows that everything works.
var short = []suite{
	{"bench", "^BenchmarkThroughput$/^backend=memory$", "0.02s", "5m"},
	{"bench", "^Benchmark(Lateness|WakeUp|Burst|Depth|Cancel|Idle|Pending|Footprint)$" + stores, "1x", "5m"},
	{"bench", "^BenchmarkRedissonBurst$/^release=4.7.0$", "1x", "5m"},
	{"bench", "^BenchmarkRabbit(Push|Drain)$", "1x", "5m"},
	{"bench", "^Benchmark(Postgres|SQLite)(Push|Drain|Snapshot)$", "1x", "5m"},
	{"bench/peers", ".", "1x", "5m"},
}

func (s suite) args(trial bool) []string {
	args := []string{"test", "-run", "^$", "-bench", s.pattern, "-benchtime", s.benchtime, "-timeout", s.timeout}
	if trial {
		args = append(args, "-short")
	}
	return append(args, ".")
}

// command is the command to type in the directory.
func command(args []string) string {
	words := []string{"go"}
	for _, a := range args {
		if strings.ContainsAny(a, "^$()|*? ") {
			a = "'" + a + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}

// measuring is a report in the making.
type measuring struct {
	file     *raw.File
	again    *raw.Machine // where a part is measured again, else nil
	root     string       // of the repository
	kept     string       // the directory for raw data
	progress io.Writer
}

// measure runs all suites, one after the other, and goes on when one of them fails. It saves the
// results after each: it takes most of an hour.
func (m measuring) measure(ctx context.Context, suites []suite, save func(*raw.File) error) error {
	for _, s := range suites {
		if err := m.run(ctx, s); err != nil {
			return err
		}
		if err := save(m.file); err != nil {
			return err
		}
	}
	return nil
}

// suitesOf are the suites of a report whose commands match a pattern.
func suitesOf(trial bool, only *regexp.Regexp) (found []suite, err error) {
	all := full
	if trial {
		all = short
	}
	for _, s := range all {
		if only.MatchString(s.dir + ": " + command(s.args(trial))) {
			found = append(found, s)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("nothing to measure: %q matches none of the commands at the end of docs/%s", only, pageName)
	}
	return found, nil
}

func (m measuring) run(ctx context.Context, s suite) error {
	args := s.args(m.file.Trial)
	_, _ = fmt.Fprintf(m.progress, "\n%s: %s\n", s.dir, command(args))
	start := time.Now()
	output, failed := m.goTest(ctx, s.dir, args)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	results, versions, err := parse(bytes.NewReader(output))
	if err != nil {
		return err
	}
	records, err := raw.Read(m.kept)
	if err != nil {
		return err
	}
	m.file.Replace(raw.Run{
		Dir: s.dir, Command: command(args), Seconds: time.Since(start).Round(time.Second).Seconds(), Again: m.again,
		Failed: failed != nil, Output: strings.Split(strings.TrimSpace(string(output)), "\n"),
	}, results, records)
	addVersions(&m.file.Machine, versions)
	return nil
}

// goTest also copies its output while it runs.
func (m measuring) goTest(ctx context.Context, dir string, args []string) (output []byte, err error) {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(m.root, dir)
	cmd.Env = append(os.Environ(), raw.DirEnv+"="+m.kept)
	cmd.Stdout = io.MultiWriter(&said, m.progress)
	cmd.Stderr = cmd.Stdout
	cmd.WaitDelay = 10 * time.Second
	err = cmd.Run()
	return said.Bytes(), err
}

func addVersions(m *raw.Machine, versions []raw.Version) {
	known := make(map[string]bool)
	for _, v := range m.Versions {
		known[v.Name] = true
	}
	for _, v := range versions {
		if !known[v.Name] {
			m.Versions = append(m.Versions, v)
		}
	}
}
