package schedule_test

import (
	"archive/zip"
	"bytes"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/schedule"
)

var everyZoneDaily = flag.Bool("every-zone-daily", false, "TestCronInEveryZone: compare every day of every zone, which takes minutes")

const firstYearOfZones = 2010

// yearsOfZones has four leap years, or with -every-zone-daily ten.
func yearsOfZones() int {
	if *everyZoneDaily {
		return 40
	}
	return 16
}

// zoneFiles returns the zones of both kinds of data. The system's data list each change of the
// clocks for decades. Go's data, which time/tzdata embeds, give a rule instead. Zones with equal
// bytes appear once.
func zoneFiles(t *testing.T) map[string][]byte {
	t.Helper()
	all := make(map[string][]byte)
	seen := make(map[uint64]bool)
	add := func(name string, data []byte) {
		h := fnv.New64()
		h.Write(data)
		if bytes.HasPrefix(data, []byte("TZif")) && !seen[h.Sum64()] {
			seen[h.Sum64()] = true
			all[name] = data
		}
	}
	goroot, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	must(t, err)
	archive, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(goroot)), "lib", "time", "zoneinfo.zip"))
	must(t, err)
	defer func() { _ = archive.Close() }()
	for _, f := range archive.File {
		r, err := f.Open()
		must(t, err)
		data, err := io.ReadAll(r)
		must(t, err)
		add("go "+f.Name, data)
	}
	if len(all) < 300 {
		t.Fatalf("%d zones in Go's data", len(all))
	}
	const system = "/usr/share/zoneinfo"
	_ = filepath.WalkDir(system, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			if e != nil && (e.Name() == "right" || e.Name() == "posix") { // with leap seconds, and the same again
				return fs.SkipDir
			}
			return nil
		}
		if data, err := os.ReadFile(path); err == nil {
			add("system "+strings.TrimPrefix(path, system+"/"), data)
		}
		return nil
	})
	return all
}

// A zoneCheck compares the occurrences that CronIn finds in one zone with all instants at which the
// clocks there show the time.
type zoneCheck struct {
	loc     *time.Location
	offsets []int       // seconds, all that the zone has in these years
	changes []time.Time // days on which the offset differs from the day before
}

func newZoneCheck(loc *time.Location) *zoneCheck {
	z := &zoneCheck{loc: loc}
	last := 0
	end := time.Date(firstYearOfZones+yearsOfZones(), 1, 2, 0, 0, 0, 0, time.UTC)
	offsetAt := func(day time.Time) int {
		_, offset := day.In(loc).Zone()
		return offset
	}
	// No clocks change there and back within a week.
	for day := time.Date(firstYearOfZones-1, 1, 1, 0, 0, 0, 0, time.UTC); day.Before(end); day = day.AddDate(0, 0, 7) {
		offset := offsetAt(day)
		if !slices.Contains(z.offsets, offset) {
			z.offsets = append(z.offsets, offset)
		}
		if offset != last {
			changed := day
			for before := day.AddDate(0, 0, -1); offsetAt(before) == offset && day.Sub(before) < 7*24*time.Hour; before = before.AddDate(0, 0, -1) {
				changed = before
			}
			z.changes = append(z.changes, changed)
		}
		last = offset
	}
	return z
}

// shown returns the instants at which the clocks show a time of a day: none, one or two.
func (z *zoneCheck) shown(year int, month time.Month, day, hour, minute int) (at []time.Time) {
	for _, offset := range z.offsets {
		t := time.Date(year, month, day, hour, minute, 0, 0, time.UTC).Add(-time.Duration(offset) * time.Second)
		local := t.In(z.loc)
		if local.Day() == day && local.Hour() == hour && local.Minute() == minute {
			at = append(at, t)
		}
	}
	slices.SortFunc(at, time.Time.Compare)
	return at
}

// compare walks from one day to another and returns the first difference.
func (z *zoneCheck) compare(s schedule.Schedule, hour, minute int, from, to time.Time) error {
	after := from
	for day := from.AddDate(0, 0, -1); day.Before(to); day = day.AddDate(0, 0, 1) {
		for _, want := range z.shown(day.Year(), day.Month(), day.Day(), hour, minute) {
			if !want.After(after) {
				continue
			}
			if got := s.Next(after); !got.Equal(want) {
				return fmt.Errorf("after %v: got %v, want %v", after.In(z.loc), got.In(z.loc), want.In(z.loc))
			}
			after = want
		}
	}
	return nil
}

// interesting returns the spans in which a schedule may go wrong: around each change of the clocks
// and the turn of each year.
func (z *zoneCheck) interesting() (spans [][2]time.Time) {
	for year := firstYearOfZones; year < firstYearOfZones+yearsOfZones(); year++ {
		turn := time.Date(year, 12, 30, 0, 0, 0, 0, time.UTC)
		spans = append(spans, [2]time.Time{turn, turn.AddDate(0, 0, 3)})
	}
	for _, day := range z.changes {
		spans = append(spans, [2]time.Time{day.AddDate(0, 0, -2), day})
	}
	return spans
}

// TestCronInEveryZone compares daily schedules with brute force, in all zones of both kinds of data
// over 16 years: on the days around each change of the clocks and each turn of a year. With
// -every-zone-daily it compares all days of 40 years.
func TestCronInEveryZone(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	files := zoneFiles(t)
	var comparing sync.WaitGroup
	running := make(chan struct{}, 4)
	for name, data := range files {
		loc, err := time.LoadLocationFromTZData(name, data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		running <- struct{}{}
		comparing.Go(func() {
			defer func() { <-running }()
			daily, err := schedule.CronIn("30 2 * * *", loc)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			z := newZoneCheck(loc)
			spans := z.interesting()
			if *everyZoneDaily {
				spans = [][2]time.Time{{time.Date(firstYearOfZones, 1, 2, 0, 0, 0, 0, time.UTC), time.Date(firstYearOfZones+yearsOfZones(), 1, 1, 0, 0, 0, 0, time.UTC)}}
			}
			for _, span := range spans {
				if err := z.compare(daily, 2, 30, span[0], span[1]); err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
			}
		})
	}
	comparing.Wait()
	t.Logf("%d zones", len(files))
}
