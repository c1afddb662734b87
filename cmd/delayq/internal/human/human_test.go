package human

import (
	"testing"
	"time"
	_ "time/tzdata" // the same changes of clocks on every machine
)

func TestDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "1.5s": 1500 * time.Millisecond, "3d": 72 * time.Hour, "2w": 336 * time.Hour, "1d12h": 36 * time.Hour, "1w1d1h1m": 193*time.Hour + time.Minute,
		"0.5d": 12 * time.Hour, ".5w": 84 * time.Hour, "-1d12h": -36 * time.Hour, "+2d": 48 * time.Hour, "36500d": 876_000 * time.Hour, "720h": 720 * time.Hour,
	} {
		if got, err := Duration(text); err != nil || got != want {
			t.Errorf("%q: got %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-", "3", "3 d", "d", "1d-1h", "1d 1h", "1h1d", "1d1w", "3y", "tomorrow", "110000d", "106751d24h", "99999999999999999999w", "NaNd", "1e3d", "--1d", "-+1h", "2d+1h"} {
		if got, err := Duration(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

func TestBrief(t *testing.T) {
	t.Parallel()
	for text, d := range map[string]time.Duration{
		"0s": 0, "10s": 10 * time.Second, "30m": 30 * time.Minute, "20h": 20 * time.Hour, "2d": 48 * time.Hour, "1m30s": 90 * time.Second,
		"1d12h": 36 * time.Hour, "-48h5m": -48*time.Hour - 5*time.Minute, "29d23h59m59s": 30*day - time.Second,
	} {
		if got := Brief(d); got != text {
			t.Errorf("%v: got %s, want %s", d, got, text)
		}
		if got, err := Duration(text); err != nil || got != d {
			t.Errorf("%s is read as %v, %v", text, got, err)
		}
	}
}

func TestTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 31, 23, 30, 0, 0, place(t, "Europe/Berlin"))
	for text, want := range map[string]string{
		"2026-12-24":                           "2026-12-23T23:00:00Z",
		"2026-12-24 09:00":                     "2026-12-24T08:00:00Z",
		"2026-12-24  9:00:05.25 ":              "2026-12-24T08:00:05.25Z",
		"2026-07-24T09:00":                     "2026-07-24T07:00:00Z",
		"24 Dec 2026 09:00":                    "2026-12-24T08:00:00Z",
		"24 december 2026":                     "2026-12-23T23:00:00Z",
		"Dec 24, 2026 09:00":                   "2026-12-24T08:00:00Z",
		"2026-12-24T09:00:00Z":                 "2026-12-24T09:00:00Z",
		"2026-12-24T09:00:00.5+05:30":          "2026-12-24T03:30:00.5Z",
		"2026-12-24 09:00 +05:30":              "2026-12-24T03:30:00Z",
		"2026-12-24 09:00-0800":                "2026-12-24T17:00:00Z",
		"24 Dec 2026 09:00 UTC":                "2026-12-24T09:00:00Z",
		"2026-07-24 09:00 Asia/Tokyo":          "2026-07-24T00:00:00Z",
		"today":                                "2026-12-30T23:00:00Z",
		"today 23:59":                          "2026-12-31T22:59:00Z",
		"tomorrow":                             "2026-12-31T23:00:00Z",
		"tomorrow 9:00":                        "2027-01-01T08:00:00Z",
		"tomorrow 9:00 Asia/Tokyo":             "2027-01-02T00:00:00Z", // the first of January has begun there
		"2026-03-29 02:00":                     "2026-03-29T01:00:00Z", // clocks skip the hour
		"2026-03-29 02:30":                     "2026-03-29T01:30:00Z",
		"2026-03-29 03:00":                     "2026-03-29T01:00:00Z",
		"2026-03-29 01:59":                     "2026-03-29T00:59:00Z",
		"2026-10-25 02:00":                     "2026-10-25T00:00:00Z", // clocks show the hour twice
		"2026-10-25 02:30":                     "2026-10-25T00:30:00Z",
		"2026-10-25 02:30+01:00":               "2026-10-25T01:30:00Z",
		"2026-10-25 03:00":                     "2026-10-25T02:00:00Z",
		"2026-04-05 01:45 Australia/Lord_Howe": "2026-04-04T14:45:00Z", // half an hour, twice
	} {
		got, err := Time(text, now)
		if err != nil || got.UTC().Format(time.RFC3339Nano) != want {
			t.Errorf("%q: got %v, %v; want %s", text, got.UTC(), err, want)
		}
	}
	for _, text := range []string{
		"", "soon", "9:00", "0001-01-01T00:00:00Z", "0001-01-01 00:00+00:00", "2026-13-01", "2026-02-30", "2026-12-24 25:00", "24.12.2026", "12/24/2026", "2026-12-24 09:00 Nowhere/City", "2026-12-24 09:00 XYZ",
		"tomorrow9:00", "yesterday", "1893456000", "2026-12-24 09:00 ../../etc/passwd", "2026-12-24T09:00:00Z Europe/Berlin", "Local",
	} {
		if got, err := Time(text, now); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

// Where clocks skip midnight, the next day begins at 1:00.
func TestTomorrowWithoutMidnight(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, now, today, tomorrow string }{
		{"America/Santiago", "2026-09-05 00:30", "2026-09-05 09:00", "2026-09-06 09:00"},
		{"America/Santiago", "2026-09-06 01:30", "2026-09-06 09:00", "2026-09-07 09:00"},
		{"America/Havana", "2026-03-07 00:59", "2026-03-07 09:00", "2026-03-08 09:00"},
		{"Atlantic/Azores", "2026-03-28 00:00", "2026-03-28 09:00", "2026-03-29 09:00"},
	} {
		loc := place(t, c.name)
		now, err := time.ParseInLocation("2006-01-02 15:04", c.now, loc)
		if err != nil {
			t.Fatal(err)
		}
		for word, want := range map[string]string{"today": c.today, "tomorrow": c.tomorrow} {
			for text, now := range map[string]time.Time{word + " 9:00": now, word + " 9:00 " + c.name: now.UTC()} {
				got, err := Time(text, now)
				if shown := got.In(loc).Format("2006-01-02 15:04"); err != nil || shown != want {
					t.Errorf("%s in %s is %s, %v; want %s", text, now, shown, err, want)
				}
			}
		}
	}
}

func place(t *testing.T, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// Around each change of clocks, a time is the first one at which they show it, or one that they skip.
func TestTimesAroundChangesOfClocks(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "America/Havana"} {
		_, change := time.Date(2026, 1, 1, 0, 0, 0, 0, place(t, name)).ZoneBounds()
		for ; change.Year() == 2026; _, change = change.ZoneBounds() {
			for before := -3 * time.Hour; before < 3*time.Hour; before += 5 * time.Minute {
				wantFirst(t, change, change.Add(before).Format(time.DateTime))
				_, offset := change.Add(-time.Second).Zone()
				wantFirst(t, change, change.UTC().Add(before+time.Duration(offset)*time.Second).Format(time.DateTime))
			}
		}
	}
}

// wantFirst reads what clocks show or skip, and looks for an earlier time at which they show it.
func wantFirst(t *testing.T, change time.Time, shown string) {
	t.Helper()
	got, err := Time(shown, change)
	if err != nil {
		t.Fatal(err)
	}
	for i := -5 * time.Hour; i < 5*time.Hour; i += 5 * time.Minute {
		if other := change.Add(i); other.Format(time.DateTime) == shown && !other.Equal(got) && (other.Before(got) || got.Format(time.DateTime) != shown) {
			t.Errorf("%s is read as %v, and %v shows it", shown, got, other)
		}
	}
	if _, before := change.Add(-time.Second).Zone(); got.Format(time.DateTime) != shown && got.UTC().Add(time.Duration(before)*time.Second).Format(time.DateTime) != shown {
		t.Errorf("%s is skipped, and read as %v", shown, got)
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0 warnings", 1: "1 warning", 2: "2 warnings"} {
		if got := Count(n, "warning"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// FuzzHuman reads anything without a panic. A duration that is read is written and read again.
func FuzzHuman(f *testing.F) {
	for _, seed := range []string{"1d12h", "-2w", "2026-03-29 02:30 Europe/Berlin", "tomorrow 9:00", "24 Dec 2026", "\xff", "today\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := Duration(text); err == nil {
			if again, err := Duration(Brief(d)); err != nil || again != d {
				t.Errorf("%q is %v, then %v: %v", text, d, again, err)
			}
		}
		_, _ = Time(text, time.Now())
	})
}
