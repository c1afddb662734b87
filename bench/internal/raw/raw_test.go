package raw_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/delayq/delayq/bench/internal/raw"
)

const ms = time.Millisecond

// keep has f write, and returns the records.
func keep(t *testing.T, f func()) []raw.Record {
	t.Helper()
	dir := t.TempDir()
	t.Setenv(raw.DirEnv, dir)
	f()
	all, err := raw.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestLatenessIsKept(t *testing.T) {
	late := make([]time.Duration, 1000)
	for i := range late {
		late[i] = time.Duration(i-99) * ms // 99 early ones, and 900 ms at most
	}
	all := keep(t, func() { raw.Lateness(t, "go", late) })
	if len(all) != 1 || all[0].Benchmark != t.Name() || all[0].Side != "go" || all[0].Arrivals != nil {
		t.Fatalf("%+v", all)
	}
	d := all[0].Lateness
	if d.Messages != 1000 || d.Early != 99 || d.Least != int64(-99*ms) || d.Most != int64(900*ms) {
		t.Errorf("%+v", d)
	}
	for share, want := range map[float64]time.Duration{0.05: 0, 0.5: 400 * ms, 0.99: 890 * ms, 1: 900 * ms} {
		if got := time.Duration(d.At(share)); got < want-10*ms || got > want+10*ms {
			t.Errorf("%v at %v, want about %v", got, share, want)
		}
	}
}

func TestPointsRise(t *testing.T) {
	all := keep(t, func() { raw.Lateness(t, "", []time.Duration{-ms, 0, 1, ms, ms, time.Hour}) })
	points := all[0].Lateness.Points
	for i := 1; i < len(points); i++ {
		if points[i].Share < points[i-1].Share || points[i].Late < points[i-1].Late {
			t.Errorf("%v follows %v", points[i], points[i-1])
		}
	}
	if last := points[len(points)-1]; last.Share != 1 || last.Late < int64(time.Hour) {
		t.Errorf("the last point is %v", last)
	}
}

func TestArrivalsAreCounted(t *testing.T) {
	all := keep(t, func() { raw.Arrivals(t, "go", []time.Duration{-300 * ms, -1, 0, ms, ms, 1500 * ms}) })
	line := all[0].Arrivals
	count := func(from, to time.Duration) (n int) {
		for i, c := range line.Counts {
			if start := time.Duration(line.Start + int64(i)*line.Slice); start >= from && start < to {
				n += c
			}
		}
		return n
	}
	if line.Messages != 6 || len(line.Counts) > 200 {
		t.Errorf("%d messages in %d slices", line.Messages, len(line.Counts))
	}
	for _, want := range []struct {
		from, to time.Duration
		n        int
	}{{-time.Second, 0, 2}, {0, 100 * ms, 3}, {100 * ms, time.Second, 0}, {time.Second, 2 * time.Second, 1}} {
		if n := count(want.from, want.to); n != want.n {
			t.Errorf("%d arrived between %v and %v, want %d", n, want.from, want.to, want.n)
		}
	}
}

func TestTheLastOfARunCounts(t *testing.T) {
	all := keep(t, func() {
		raw.Lateness(t, "go", []time.Duration{ms})
		raw.Arrivals(t, "go", []time.Duration{ms})
		raw.Lateness(t, "java", []time.Duration{ms})
		raw.Lateness(t, "go", []time.Duration{ms, 2 * ms})
	})
	if len(all) != 3 || all[0].Lateness.Messages != 2 {
		t.Errorf("%+v", all)
	}
}

func TestNothingMeasuredIsNoReasonToFail(t *testing.T) {
	all := keep(t, func() {
		raw.Lateness(t, "go", nil)
		raw.Arrivals(t, "go", nil)
	})
	if len(all) != 2 || all[0].Lateness.At(0.99) != 0 {
		t.Errorf("%+v", all)
	}
}

func TestWithoutADirectoryNothingIsKept(t *testing.T) {
	t.Setenv(raw.DirEnv, "")
	t.Chdir(t.TempDir())
	raw.Lateness(t, "go", []time.Duration{ms})
	if left, err := filepath.Glob("*"); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestADamagedFileIsAnError(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.jsonl"), []byte("{\"benchmark\":\"B\"}\n{\"bench"), 0o600); err != nil {
		t.Fatal(err)
	}
	if all, err := raw.Read(dir); err == nil {
		t.Errorf("read %v", all)
	}
}
