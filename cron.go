package delayq

import (
	"strings"
	"time"

	"github.com/adhocore/gronx"

	"github.com/delayq/delayq/backend"
)

// Cron returns the schedule of a cron expression, in UTC: minute, hour, day of the month, month, day of the week, as in
// "30 6 * * MON-FRI". A sixth field in front is the second, a seventh at the end the year. @hourly, @daily, @weekly,
// @monthly and @yearly have their usual meaning; L, W and # have theirs, as in "the last", "the nearest
// weekday" and "the second Friday". An expression that cannot be read, or has no occurrence, returns [ErrInvalid].
func Cron(expr string) (Schedule, error) { return CronIn(expr, time.UTC) }

// CronIn is [Cron] by the clocks of a place. Where they are set forward, the times that they skip do not occur; where
// they are set back, what they show twice occurs twice, an hour apart. So a daily schedule at half past two fails to
// occur on one day of the year in most of Europe, and occurs twice on another. UTC knows neither.
func CronIn(expr string, loc *time.Location) (Schedule, error) {
	if loc == nil {
		return nil, opError("cron", "", "", backend.Invalid("location", described("nil"), "time.UTC or another"))
	}
	c := &cron{expr: expr, loc: loc}
	if len(expr) > longestCron || !validCron(expr) || c.Next(time.Unix(0, 0)).IsZero() {
		return nil, opError("cron", "", "", backend.Invalid("cron expression", expr, "five to seven fields with an occurrence after 1970"))
	}
	return c, nil
}

// longestCron has room for a list of all minutes. The parser looks at each item of a list for each day that it tries.
const longestCron = 256

type cron struct {
	expr string
	loc  *time.Location
}

// maxOffsets bounds how many spans without a change of a place's clocks are looked across: a century has two changes a year, the turns
// of the years, at which Go ends a span that a rule gives, and the last days of leap years, which nextChange adds.
const maxOffsets = 330

// Next goes from one change of the clocks to the next, and asks the parser about clocks that do not change: what it makes of
// those that do depends on where it starts. After the last occurrence it may answer with that.
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

// nextChange returns when the clocks may next change after from; zero for never. Where a rule gives the changes, package time ends
// every year after 365 days: on the last day of a leap year the end is in the past. The next midnight then stands for it.
func nextChange(from time.Time) time.Time {
	_, change := from.ZoneBounds()
	if change.IsZero() || change.After(from) {
		return change
	}
	return from.Truncate(24 * time.Hour).Add(24 * time.Hour)
}

// validCron has the parser look at each item of a list by itself: it stops at the first that fits the present time.
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
