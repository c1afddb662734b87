package main

import (
	"bytes"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/delayq/delayq/bench/internal/raw"
)

var update = flag.Bool("update", false, "write the golden files")

const golden = "testdata/golden"

func trial(t *testing.T) *raw.File {
	t.Helper()
	f, err := raw.Load("testdata/raw.json")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A column without a value names a metric that no benchmark prints.
func TestEveryColumnHasAValue(t *testing.T) {
	all := rows(trial(t))
	for i, c := range columns {
		if !slices.ContainsFunc(all, func(r row) bool { return r.Cells[1+i] != "–" }) {
			t.Errorf("no side has %s of %s", c.unit, c.benchmark)
		}
	}
}

func mustRender(t *testing.T, f *raw.File) (page string, pictures map[string][]byte) {
	t.Helper()
	text, pictures, err := render(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), pictures
}

// go test -run Golden -update writes the files anew.
func TestGolden(t *testing.T) {
	page, pictures := mustRender(t, trial(t))
	// no .md: its links are for another place
	files := map[string][]byte{"page.golden": []byte(page)}
	for name, svg := range pictures {
		files[name+".svg"] = svg
	}
	for name, text := range files {
		path := filepath.Join(golden, name)
		if *update {
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(path); err != nil || !bytes.Equal(text, want) {
			t.Errorf("%s differs from its golden file, %v", name, err)
		}
	}
	if old, err := os.ReadDir(golden); err != nil || len(old) != len(files) {
		t.Errorf("%d golden files for %d, %v", len(old), len(files), err)
	}
}

func TestPicturesNameEverySeries(t *testing.T) {
	_, pictures := mustRender(t, trial(t))
	redis := []string{"zsetpoll", "keyspace", "redisson"}
	for name, want := range map[string][]string{
		"lateness":       slices.Concat(redis, []string{"memory", "rabbitmq", "time.AfterFunc", "lateness, ms (log)"}),
		"lateness-peers": {"zsetpoll", "afterfunc", "asynq-tuned", "beanstalkd", "nats"},
		"push":           slices.Concat(redis, []string{"asynq-tuned", "beanstalkd", "nats", "messages a second"}),
		"push-batch":     slices.Concat(redis, []string{"asynq-tuned", "nats"}),
		"drain":          slices.Concat(redis, []string{"asynq-tuned", "beanstalkd", "nats"}),
		"burst":          slices.Concat(redis, []string{"asynq-tuned", "beanstalkd", "nats", "time since they are due, s (log)"}),
		"depth":          slices.Concat(redis, []string{"memory", "µs a message (log)", "pending messages (log)"}),
		"pending":        slices.Concat(redis, []string{"memory", "asynq-tuned", "beanstalkd", "bytes of memory"}),
		"wakeup":         slices.Concat(redis, []string{"memory", "rabbitmq"}),
	} {
		svg := string(pictures[name])
		for _, w := range want {
			if !strings.Contains(svg, ">"+w+"<") && !strings.Contains(svg, ">"+w+", ") {
				t.Errorf("%s does not say %s: %s", name, w, svg)
			}
		}
	}
	if len(pictures) != 9 {
		t.Errorf("there are the pictures %v", slices.Sorted(maps.Keys(pictures)))
	}
}

func TestPageHasARowForEveryGoal(t *testing.T) {
	page, _ := mustRender(t, trial(t))
	for _, g := range goals {
		rows := 0
		for line := range strings.Lines(page) {
			if strings.HasPrefix(line, "| "+g.what+" | ") && strings.Contains(line, "`"+g.command()+"`") {
				rows++
			}
		}
		if rows != 1 {
			t.Errorf("%d rows for %s", rows, g.what)
		}
	}
}

func TestPageLinksToItsPicturesAlone(t *testing.T) {
	page, pictures := mustRender(t, trial(t))
	for name := range pictures {
		if strings.Count(page, "("+picturesDir+"/"+name+".svg)") != 1 {
			t.Errorf("the page does not show %s", name)
		}
	}
	if strings.Contains(page, "No picture") {
		t.Error("a picture is missing")
	}
}

func TestPageSaysThatNothingWasMeasured(t *testing.T) {
	page, pictures := mustRender(t, new(raw.File))
	if len(pictures) > 0 || strings.Count(page, "| not measured |") != len(goals) {
		t.Errorf("%d pictures: %s", len(pictures), page)
	}
	for _, bad := range []string{"NaN", "Inf", "%!"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %s: %s", bad, page)
		}
	}
}

func TestPageNotesShortRunsAndBusyMachines(t *testing.T) {
	const busy, short = "The machine was busy", "This is a trial"
	for _, c := range []struct {
		f    raw.File
		want []string
	}{
		{raw.File{}, nil},
		{raw.File{Trial: true}, []string{short}},
		{raw.File{Machine: raw.Machine{Load: 1.6}}, []string{busy}},
		{raw.File{Machine: raw.Machine{Load: 1.5}}, nil},
	} {
		page, _ := mustRender(t, &c.f)
		for _, warning := range []string{busy, short} {
			if strings.Contains(page, warning) != slices.Contains(c.want, warning) {
				t.Errorf("%+v: want the warnings %v: %s", c.f, c.want, page)
			}
		}
	}
}

func TestTheReportReplacesTheLastOne(t *testing.T) {
	docs := t.TempDir()
	f := trial(t)
	if err := write(docs, f); err != nil {
		t.Fatal(err)
	}
	stale := filepath.Join(docs, picturesDir, "stale.svg")
	if err := os.WriteFile(stale, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := redraw(docs); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(stale); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a picture of the last report is left: %v", err)
	}
	page, _ := mustRender(t, f)
	if again, err := os.ReadFile(filepath.Join(docs, pageName)); err != nil || string(again) != page {
		t.Errorf("the page drawn from the raw data that were saved differs, %v", err)
	}
}
