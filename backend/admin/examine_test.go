package admin_test

import (
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend/admin"
)

func TestClockDifference(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		ahead, within time.Duration
		severity      admin.Severity
		text          string
	}{
		{0, time.Millisecond, admin.Fine, "0s ahead of this machine's, give or take 1ms"},
		{100 * time.Millisecond, 0, admin.Fine, "100ms ahead of"},
		{-300 * time.Millisecond, 200 * time.Millisecond, admin.Fine, "300ms behind this machine's, give or take 200ms"},
		{101 * time.Millisecond, 0, admin.Note, "101ms ahead of"},
		{-time.Second, time.Millisecond, admin.Note, "1s behind"},
		{-2 * time.Second, time.Millisecond, admin.Warning, "2s behind"},
		{time.Hour, time.Second, admin.Warning, "1h0m0s ahead of"},
	} {
		f := admin.ClockDifference{Server: "one:1", Ahead: tt.ahead, Within: tt.within}.Finding()
		if f.Severity != tt.severity || !strings.Contains(f.Text, tt.text) || f.Servers != "one:1" || f.About != "clock" {
			t.Errorf("%v: got %v %+v; want %v, %s", tt.ahead, f.Severity, f, tt.severity, tt.text)
		}
		if (f.Severity > admin.Fine) != (f.Remedy != "") {
			t.Errorf("%v: %v with the remedy %q", tt.ahead, f.Severity, f.Remedy)
		}
	}
}

func TestSeverityNames(t *testing.T) {
	t.Parallel()
	for s, want := range map[admin.Severity]string{
		admin.Fine: "ok", admin.Note: "note", admin.Warning: "warning", admin.Problem: "problem", 9: "Severity(9)",
	} {
		if got := s.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
