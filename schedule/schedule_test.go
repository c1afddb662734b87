package schedule_test

import (
	"testing"
	"time"
	_ "time/tzdata" // machines without zones run the same tests

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/schedule"
)

func TestEvery(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		d           time.Duration
		after, want string
	}{
		{time.Hour, "2026-05-01T12:00:00Z", "2026-05-01T13:00:00Z"},
		{time.Hour, "2026-05-01T12:59:59.999999999Z", "2026-05-01T13:00:00Z"},
		{time.Hour, "2026-05-01T14:30:00+05:30", "2026-05-01T10:00:00Z"},
		{24 * time.Hour, "2026-05-01T12:00:00Z", "2026-05-02T00:00:00Z"},
		{7 * time.Second, "1970-01-01T00:00:00Z", "1970-01-01T00:00:07Z"},
		{7 * time.Second, "1969-12-31T23:59:55Z", "1970-01-01T00:00:00Z"},
		{7 * time.Second, "1969-12-31T23:59:53Z", "1970-01-01T00:00:00Z"},
		{1500 * time.Millisecond, "1970-01-01T00:00:01Z", "1970-01-01T00:00:01.5Z"},
		{time.Hour, "2262-04-11T23:30:00Z", "2262-04-12T00:00:00Z"}, // 63 bits of nanoseconds end between them
		{7 * time.Second, "2300-01-01T00:00:00Z", "2300-01-01T00:00:04Z"},
		{7 * time.Second, "1600-01-01T00:00:00Z", "1600-01-01T00:00:02Z"},
		{time.Hour, "0001-01-01T00:00:00Z", "0001-01-01T01:00:00Z"},
	} {
		if got := schedule.Every(tt.d).Next(at(t, tt.after)); !got.Equal(at(t, tt.want)) || got.Location() != time.UTC {
			t.Errorf("every %v after %s: %v, want %s", tt.d, tt.after, got, tt.want)
		}
	}
}

func at(t *testing.T, s string) time.Time {
	t.Helper()
	tm, err := time.Parse(time.RFC3339Nano, s)
	must(t, err)
	return tm
}

// The last time that a time.Time can hold has no occurrence after it.
func TestEveryEnds(t *testing.T) {
	t.Parallel()
	last := time.Unix(1<<63-62135596801, 999999999)
	if next := schedule.Every(time.Hour).Next(last); !next.IsZero() {
		t.Errorf("after %v comes %v", last, next)
	}
}

func TestEveryOutOfRange(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{-time.Hour, 0, time.Second - 1, backend.MaxUnique + 1} {
		s := schedule.Every(d)
		if next := s.Next(time.Unix(1e9, 0)); !next.IsZero() {
			t.Errorf("every %v: next is %v", d, next)
		}
		wantInvalid(t, schedule.Repeat(t.Context(), newQueue(t), "name", s, nil), "Every", d.String())
	}
}

func TestCron(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ expr, after, want string }{
		{"* * * * *", "2026-05-01T12:00:00Z", "2026-05-01T12:01:00Z"},
		{"* * * * *", "2026-05-01T12:00:59.9Z", "2026-05-01T12:01:00Z"},
		{"30 6 * * MON-FRI", "2026-05-01T06:30:00Z", "2026-05-04T06:30:00Z"},
		{"30 6 * * 1-5", "2026-05-01T06:29:59.999999999Z", "2026-05-01T06:30:00Z"},
		{"0 0 1 1 *", "2026-05-01T12:00:00Z", "2027-01-01T00:00:00Z"},
		{"0 0 29 2 *", "2028-03-01T00:00:00Z", "2032-02-29T00:00:00Z"},
		{"0 0 29 2 *", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"},
		{"0 12 L * *", "2026-02-01T00:00:00Z", "2026-02-28T12:00:00Z"},
		{"0 9 * * 5#2", "2026-05-09T00:00:00Z", "2026-06-12T09:00:00Z"},
		{"*/20 * * * * *", "2026-05-01T12:00:40Z", "2026-05-01T12:01:00Z"},
		{"@daily", "2026-05-01T12:00:00+02:00", "2026-05-02T00:00:00Z"},
	} {
		if got := mustCron(t, tt.expr, time.UTC).Next(at(t, tt.after)); !got.Equal(at(t, tt.want)) {
			t.Errorf("%q after %s: %v, want %s", tt.expr, tt.after, got, tt.want)
		}
	}
	if next := mustCron(t, "0 0 0 1 1 * 2020", time.UTC).Next(at(t, "2020-01-01T00:00:00Z")); !next.IsZero() {
		t.Errorf("after the only occurrence comes %v", next)
	}
}

func mustCron(t *testing.T, expr string, loc *time.Location) schedule.Schedule {
	t.Helper()
	s, err := schedule.CronIn(expr, loc)
	must(t, err)
	return s
}

func place(t *testing.T, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err) // the zones are in the test
	}
	return loc
}

// In Berlin and New York the clocks skip an hour and show one twice, on Lord Howe half an hour.
func TestCronWhereClocksAreSet(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		place, expr, after string
		want               []string
	}{
		{"Europe/Berlin", "30 2 * * *", "2026-03-28T00:00:00Z", []string{"2026-03-28T02:30:00+01:00", "2026-03-30T02:30:00+02:00"}},
		{"Europe/Berlin", "30 2 * * *", "2026-10-24T12:00:00Z", []string{"2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00", "2026-10-26T02:30:00+01:00"}},
		{"Europe/Berlin", "0 3 * * *", "2026-03-28T12:00:00Z", []string{"2026-03-29T03:00:00+02:00", "2026-03-30T03:00:00+02:00"}},
		{"Europe/Berlin", "0 * * * *", "2026-10-24T23:30:00Z", []string{"2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00", "2026-10-25T03:00:00+01:00"}},
		{"America/New_York", "30 1 * * *", "2026-11-01T00:00:00Z", []string{"2026-11-01T01:30:00-04:00", "2026-11-01T01:30:00-05:00", "2026-11-02T01:30:00-05:00"}},
		{"America/New_York", "30 2 * * *", "2026-03-07T12:00:00Z", []string{"2026-03-09T02:30:00-04:00"}},
		{"Australia/Lord_Howe", "*/15 * * * *", "2026-04-04T14:40:00Z", []string{
			"2026-04-05T01:45:00+11:00", "2026-04-05T01:30:00+10:30", "2026-04-05T01:45:00+10:30", "2026-04-05T02:00:00+10:30",
		}},
	} {
		s, next := mustCron(t, tt.expr, place(t, tt.place)), at(t, tt.after)
		for _, want := range tt.want {
			if next = s.Next(next); !next.Equal(at(t, want)) {
				t.Errorf("%q in %s: %v, want %s", tt.expr, tt.place, next, want)
			}
		}
	}
}

// The occurrences do not depend on the time given.
func TestCronIsTheSameFromEverywhere(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC"} {
		s := mustCron(t, "17,45 */2 * * *", place(t, where))
		for _, from := range []string{"2026-03-07T00:00:00Z", "2026-03-28T12:00:00Z", "2026-04-04T00:00:00Z", "2026-10-24T12:00:00Z", "2026-11-01T00:00:00Z"} {
			next := s.Next(at(t, from))
			for asked := at(t, from); asked.Before(at(t, from).Add(36 * time.Hour)); asked = asked.Add(23 * time.Minute) {
				if !asked.Before(next) {
					next = s.Next(next)
				}
				if got := s.Next(asked); !got.Equal(next) {
					t.Fatalf("in %s after %v: %v, want %v", where, asked, got, next)
				}
			}
		}
	}
}

func TestCronRejectsBadExpressions(t *testing.T) {
	t.Parallel()
	for _, expr := range []string{
		"", "* * * *", "* * * * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "5,99 * * * *", "99,5 * * * *",
		"*/0 * * * *", "a * * * *", "1-0 * * * *", "0 0 30 2 *", "@fortnightly", "1,,2 * * * *", "-1 * * * *", "0-59/61/2 * * * *",
	} {
		_, err := schedule.Cron(expr)
		wantInvalid(t, err, "cron expression", expr)
	}
	_, err := schedule.CronIn("* * * * *", nil)
	wantInvalid(t, err, "location", "nil")
}
