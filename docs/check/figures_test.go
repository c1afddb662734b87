package check

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// columns of the table "All sides" of docs/benchmarks.md.
const (
	p50Column   = 1
	p99Column   = 2
	earlyColumn = 4
)

var unitOrComma = regexp.MustCompile(`[,%]|ms`)

// Figures of lateness on other pages are those of docs/benchmarks.md, rounded.
func TestFiguresOfLateness(t *testing.T) {
	measured := tableAfter(t, "../benchmarks.md", "## All sides")
	sides := map[string][]string{
		"delayq, memory": {"memory"}, "delayq, zsetpoll": {"zsetpoll"}, "delayq, redisson": {"redisson"}, "delayq, keyspace": {"keyspace"},
		"delayq, rabbitmq": {"rabbitmq"}, "delayq, sqlite": {"sqlite"}, "delayq, postgres": {"postgres"}, "gue; tuned": {"gue", "gue-tuned"}, "goqite": {"goqite"}, "backlite": {"backlite"}, "Redisson in Java": {"redisson-java"}, "river; tuned": {"river", "river-tuned"}, "asynq; tuned": {"asynq", "asynq-tuned"},
		"NATS by nats.go; tuned": {"nats", "nats-tuned"}, "beanstalkd; tuned": {"beanstalkd", "beanstalkd-tuned"},
	}
	shown := tableAfter(t, "../comparison.md", "## Lateness")
	for name, from := range sides {
		for column, of := range map[int]int{1: p50Column, 2: p99Column, 3: earlyColumn} {
			cells := strings.Split(cell(shown, name, column), ";")
			for i, side := range from {
				text := cells[min(i, len(cells)-1)] // one figure may stand for both
				if want := cell(measured, side, of); !rounds(text, want) {
					t.Errorf("docs/comparison.md: %s has %q in column %d, docs/benchmarks.md %q", name, text, column, want)
				}
			}
		}
	}
	readme := tableAfter(t, "../../README.md", "## Beside others")
	for column, side := range map[int]string{1: "zsetpoll", 2: "asynq", 3: "river", 6: "redisson-java"} {
		if text, want := cell(readme, "late, 99 of 100 within", column), cell(measured, side, p99Column); !rounds(text, want) {
			t.Errorf("README.md: %s is late by %q, docs/benchmarks.md says %q", side, text, want)
		}
	}
}

// tableAfter returns the rows of the first table after a heading.
func tableAfter(t *testing.T, path, heading string) (rows [][]string) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(page), heading+"\n")
	if !found {
		t.Fatalf("%s has no %q", path, heading)
	}
	for line := range strings.Lines(after) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "|"):
			rows = append(rows, strings.Split(strings.Trim(line, "|"), "|"))
		case len(rows) > 0:
			return rows
		}
	}
	return rows
}

// cell returns the text in a column of the row that begins with name.
func cell(rows [][]string, name string, column int) string {
	for _, row := range rows {
		if strings.TrimSpace(row[0]) == name && column < len(row) {
			return strings.TrimSpace(row[column])
		}
	}
	return ""
}

// rounds reports whether a figure is the other one, rounded to its own digits.
func rounds(shown, measured string) bool {
	shown, measured = plain(shown), plain(measured)
	s, err1 := strconv.ParseFloat(shown, 64)
	m, err2 := strconv.ParseFloat(measured, 64)
	_, fraction, _ := strings.Cut(shown, ".")
	return err1 == nil && err2 == nil && math.Abs(s-m) <= 0.5000001*math.Pow10(-len(fraction))
}

func plain(figure string) string {
	return strings.TrimSpace(unitOrComma.ReplaceAllString(strings.ReplaceAll(figure, "−", "-"), ""))
}
