package schedule_test

import (
	"errors"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/schedule"
)

// FuzzCron reads expressions. Each is rejected as invalid, or its occurrences go on in time. The
// deadline of the test finds one that does not end.
func FuzzCron(f *testing.F) {
	for _, seed := range []string{
		"30 6 * * MON-FRI", "* * * * *", "0 0 31 2 *", "0 0 29 2 MON#5", "59 59 23 31 12 ? 9999", "*/0 * * * *", "1-0 * * * *", "5-1/2 * * * *",
		"0 0 L * *", "0 0 99W * *", "0 0 * * 9#9", "0 0 * * L", "1,,2 * * * *", "@yearly", "@", "0/9223372036854775807 * * * *",
		"59/9223372036854775750 * * * *", "-1 * * * *", "*/-1 * * * *", "1/ * * * *", "/1 * * * *", "1-2-3 * * * *", "\x00 * * * *", "٣ * * * *",
		"* * * * * 99999999999999999999", "0 0 1 1 * 1969", "# # # # #", "W W W W W", "0 0 0W * *", "0 0 -5W * *", "0 0 * * -3L",
	} {
		f.Add(seed)
	}
	start := time.Date(2026, 2, 28, 23, 59, 59, 999, time.UTC)
	f.Fuzz(func(t *testing.T, expr string) {
		if len(expr) > 60 {
			t.Skip("the parser takes its time for long lists")
		}
		s, err := schedule.Cron(expr)
		if err != nil {
			if !errors.Is(err, delayq.ErrInvalid) || !utf8.ValidString(err.Error()) {
				t.Fatalf("rejected with %v", err)
			}
			return
		}
		for after, n := start, 0; n < 3; n++ {
			next := s.Next(after)
			if next.IsZero() {
				return
			}
			if !next.After(after) {
				t.Fatalf("%q: after %v comes %v", expr, after, next)
			}
			after = next
		}
	})
}
