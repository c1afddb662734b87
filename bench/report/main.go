// Command report measures delayq and writes docs/benchmarks.md, its pictures and the raw data that
// they come from.
//
//	go run . -short         measure a little of everything, to try the machinery
//	go run . -only Rabbit   measure again what the pattern matches of the commands, and keep the
//	                        rest of the last report
//	go run . -draw          draw again what was measured last
//	go run . check          pass on the output of benchmarks, and fail where one is missing that a
//	                        goal needs
//
// It is a module of its own, so that nobody who uses delayq downloads what it needs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"

	"github.com/delayq/delayq/bench/internal/raw"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	root := flag.String("root", "../..", "the root of the repository")
	short := flag.Bool("short", false, "measure a little of everything")
	only := flag.String("only", "", "a pattern of the commands to measure again")
	draw := flag.Bool("draw", false, "do not measure")
	flag.Parse()
	if flag.Arg(0) == "check" {
		return check(io.TeeReader(os.Stdin, os.Stdout))
	}
	docs := filepath.Join(*root, "docs")
	if *draw {
		return redraw(docs)
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("reading -only: %w", err)
	}
	suites, err := suitesOf(*short, pattern)
	if err != nil {
		return err
	}
	m := measuring{&raw.File{Machine: describe(ctx, *root), Trial: *short}, nil, *root, "", os.Stderr}
	if *only != "" {
		m.again = &m.file.Machine
		if m.file, err = raw.Load(rawPath(docs)); err != nil {
			return err
		}
	}
	return report(ctx, m, suites, docs)
}

// report measures and writes.
func report(ctx context.Context, m measuring, suites []suite, docs string) error {
	kept, err := os.MkdirTemp("", "delayq-report-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(kept) }()
	m.kept = kept
	if err := m.measure(ctx, suites, func(f *raw.File) error { return write(docs, f) }); err != nil {
		return err
	}
	return failures(m.file)
}

const (
	pageName    = "benchmarks.md"
	picturesDir = "benchmarks"
	rawName     = "raw.json"
)

func rawPath(docs string) string { return filepath.Join(docs, picturesDir, rawName) }

func redraw(docs string) error {
	f, err := raw.Load(rawPath(docs))
	if err != nil {
		return err
	}
	return write(docs, f)
}

// write writes all files, and replaces those of the last report.
func write(docs string, f *raw.File) error {
	page, pictures, err := render(f)
	if err != nil {
		return err
	}
	dir := filepath.Join(docs, picturesDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := f.Save(filepath.Join(dir, rawName)); err != nil {
		return err
	}
	if err := replacePictures(dir, pictures); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(docs, pageName), page, 0o644)
}

func replacePictures(dir string, pictures map[string][]byte) error {
	old, err := filepath.Glob(filepath.Join(dir, "*.svg"))
	if err != nil {
		return err
	}
	for _, path := range old {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	for name, picture := range pictures {
		if err := os.WriteFile(filepath.Join(dir, name+".svg"), picture, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// failures returns the runs that failed, after their output is written.
func failures(f *raw.File) (err error) {
	for _, r := range f.Runs {
		if r.Failed {
			err = errors.Join(err, fmt.Errorf("%s in %s failed: %s has what it said", r.Command, r.Dir, rawName))
		}
	}
	return err
}
