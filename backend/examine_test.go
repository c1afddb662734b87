package backend_test

import (
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
)

func TestClockDifference(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		ahead, within time.Duration
		severity      backend.Severity
		text          string
	}{
		{0, time.Millisecond, backend.Fine, "0s ahead of this machine's, give or take 1ms"},
		{100 * time.Millisecond, 0, backend.Fine, "100ms ahead of"},
		{-300 * time.Millisecond, 200 * time.Millisecond, backend.Fine, "300ms behind this machine's, give or take 200ms"},
		{101 * time.Millisecond, 0, backend.Note, "101ms ahead of"},
		{-time.Second, time.Millisecond, backend.Note, "1s behind"},
		{-2 * time.Second, time.Millisecond, backend.Warning, "2s behind"},
		{time.Hour, time.Second, backend.Warning, "1h0m0s ahead of"},
	} {
		f := backend.ClockDifference{Server: "one:1", Ahead: tt.ahead, Within: tt.within}.Finding()
		if f.Severity != tt.severity || !strings.Contains(f.Text, tt.text) || f.Servers != "one:1" || f.About != "clock" {
			t.Errorf("%v: got %v %+v; want %v, %s", tt.ahead, f.Severity, f, tt.severity, tt.text)
		}
		if (f.Severity > backend.Fine) != (f.Remedy != "") {
			t.Errorf("%v: %v with the remedy %q", tt.ahead, f.Severity, f.Remedy)
		}
	}
}

func TestSeverityNames(t *testing.T) {
	t.Parallel()
	for s, want := range map[backend.Severity]string{
		backend.Fine: "ok", backend.Note: "note", backend.Warning: "warning", backend.Problem: "problem", 9: "Severity(9)",
	} {
		if got := s.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
