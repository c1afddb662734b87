package schedule

import (
	"strings"
	"time"

	"github.com/adhocore/gronx"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/valid"
)

// Cron returns the schedule of a cron expression, in UTC: minute, hour, day of the month, month,
// day of the week, as in "30 6 * * MON-FRI". A sixth field in front is the second, a seventh at the
// end the year. @hourly, @daily, @weekly, @monthly and @yearly are understood too. So are L, W and
// #, as in "the last", "the nearest weekday" and "the second Friday". Cron returns
// [delayq.ErrInvalid] for an expression that it cannot read or that has no occurrence.
func Cron(expr string) (Schedule, error) { return CronIn(expr, time.UTC) }

// CronIn is [Cron] by the clocks of a place. Times that the clocks skip when they are set forward
// do not occur. Times that they show twice when they are set back occur twice, an hour apart. In
// most of Europe a daily schedule at half past two therefore does not occur on one day of the year,
// and occurs twice on another. UTC has neither.
func CronIn(expr string, loc *time.Location) (Schedule, error) {
	if err := valid.Given("location", loc, "time.UTC or another"); err != nil {
		return nil, opError("cron", "", "", err)
	}
	c := &cron{expr: expr, loc: loc}
	if len(expr) > longestCron || !validCron(expr) || c.Next(time.Unix(0, 0)).IsZero() {
		return nil, opError("cron", "", "", backend.Invalid("cron expression", expr, "five to seven fields with an occurrence after 1970"))
	}
	return c, nil
}

// longestCron has room for a list of all minutes. The parser looks at each item of a list for each
// day that it tries.
const longestCron = 256

type cron struct {
	expr string
	loc  *time.Location
}

// maxOffsets bounds how many spans without a change of a place's clocks are searched. A century has
// two changes a year, and the turns of the years, where Go ends a span that a rule gives.
// nextChange adds the last days of leap years.
const maxOffsets = 330

// Next goes from one change of the clocks to the next, and gives the parser clocks that do not
// change: its result for clocks that do depends on where it starts. After the last occurrence it
// may return that one.
func (c *cron) Next(after time.Time) time.Time {
	from, inclusive := after.In(c.loc), false
	for range maxOffsets {
		_, offset := from.Zone()
		change := nextChange(from)
		next, err := gronx.NextTickAfter(c.expr, from.In(time.FixedZone("", offset)), inclusive)
		if err != nil {
			return time.Time{} // clocks with another offset show the same days
		}
		if next.After(after) && (change.IsZero() || next.Before(change)) {
			return next.UTC()
		}
		if change.IsZero() {
			return time.Time{}
		}
		from, inclusive = change, true
	}
	return time.Time{}
}

// nextChange returns when the clocks may next change after from; zero for never. Where a rule gives
// the changes, package time ends every year after 365 days: on the last day of a leap year the end
// is in the past. The next midnight then takes its place.
func nextChange(from time.Time) time.Time {
	_, change := from.ZoneBounds()
	if change.IsZero() || change.After(from) {
		return change
	}
	return from.Truncate(24 * time.Hour).Add(24 * time.Hour)
}

// validCron checks each item of a list by itself: the parser stops at the first that fits the
// present time.
func validCron(expr string) bool {
	fields, err := gronx.Segments(expr)
	if err != nil || !gronx.IsValid(expr) {
		return false
	}
	for i, field := range fields {
		for _, item := range strings.Split(field, ",") {
			alone := []string{"*", "*", "*", "*", "*", "*", "*"}
			alone[i] = item
			if !gronx.IsValid(strings.Join(alone, " ")) {
				return false
			}
		}
	}
	return true
}
