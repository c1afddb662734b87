// Package human reads durations and times as people write them, and writes counts and durations as
// people read them.
package human

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Examples of what [Duration] and [Time] read, for help texts and errors.
const (
	Durations = `"1.5s", "30m", "1d12h" or "2w"`
	Times     = `"2030-01-31 18:00", "31 Jan 2030 18:00", "tomorrow 9:00" or "2030-01-31T18:00:00Z"`
)

// Count is a number of things: "1 warning", "2 warnings".
func Count[N int | int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

const day = 24 * time.Hour

// longUnits are the units that [time.ParseDuration] does not have.
var longUnits = regexp.MustCompile(`^([+-]?)(?:([0-9]*\.?[0-9]+)w)?(?:([0-9]*\.?[0-9]+)d)?([0-9.].*)?$`)

var errDuration, errTime = errors.New("allowed is a duration, as " + Durations), errors.New("allowed is a time, as " + Times)

// Duration reads a duration in Go's form, with weeks and days in front: "2w", "1d12h". A day has 24
// hours, whatever clocks do.
func Duration(text string) (time.Duration, error) {
	parts := longUnits.FindStringSubmatch(text)
	if parts == nil || text == parts[1] {
		return 0, errDuration
	}
	var sum time.Duration
	for i, unit := range []time.Duration{7 * day, day} {
		n, err := strconv.ParseFloat("0"+parts[2+i], 64)
		if err != nil || n >= float64((1<<63-1)/unit) {
			return 0, errDuration
		}
		sum += time.Duration(n * float64(unit))
	}
	if parts[4] != "" {
		rest, err := time.ParseDuration(parts[4])
		if err != nil {
			return 0, errDuration
		}
		sum += rest
	}
	if sum < 0 { // more than a duration holds
		return 0, errDuration
	}
	if parts[1] == "-" {
		sum = -sum
	}
	return sum, nil
}

// Brief writes a duration without its zeros: 30m, not 30m0s. [Duration] reads it.
func Brief(d time.Duration) string {
	days := ""
	if d >= day {
		days = fmt.Sprintf("%dd", d/day)
		d %= day
		if d == 0 {
			return days
		}
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return days + s
}

// The dates, times of day and zones that [Time] reads, as layouts of package time.
var (
	dates  = []string{"2006-01-02", "2 Jan 2006", "2 January 2006", "Jan 2 2006", "January 2 2006"}
	clocks = []string{"", " 15:04", " 15:04:05", "T15:04", "T15:04:05"}
	zones  = []string{"Z07:00", " Z07:00", "Z0700", " -0700"}
)

// Time reads a time: a date, alone or with a time of day, and a zone behind it, as an offset or a
// name of the time zone database. Without a zone it is a time of now's. "today" and "tomorrow" are
// dates there. A date alone is its midnight.
//
// A time that clocks show twice when they are set back is the first one. One that they skip when
// they are set forward counts from before the change: in most of Europe 02:30 is then 03:30. RFC
// 5545, the standard of calendars, says the same.
func Time(text string, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil && !t.IsZero() { // first, as files have many
		return t, nil
	}
	text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), ",", "")
	loc := now.Location()
	for _, zone := range zones {
		if t, ok := read(text, zone); ok && !t.IsZero() { // which is no time in Go
			return t, nil
		}
	}
	if before, name, ok := cutLast(text); ok && name != "Local" {
		if named, err := time.LoadLocation(name); err == nil {
			text, loc = before, named
		}
	}
	year, month, today := now.In(loc).Date()
	for i, word := range []string{"today", "tomorrow"} {
		if rest, ok := strings.CutPrefix(text, word); ok {
			date := time.Date(year, month, today+i, 0, 0, 0, 0, time.UTC) // where each day has a midnight
			text = date.Format(time.DateOnly) + rest
		}
	}
	if wall, ok := read(text, ""); ok {
		return at(wall, loc), nil
	}
	return time.Time{}, errTime
}

// cutLast cuts off the last word.
func cutLast(text string) (before, last string, ok bool) {
	i := strings.LastIndexByte(text, ' ')
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+1:], true
}

func read(text, zone string) (t time.Time, ok bool) {
	for _, date := range dates {
		for _, clock := range clocks {
			if t, err := time.Parse(date+clock+zone, text); err == nil {
				return t, true
			}
		}
	}
	return t, false
}

// at returns the time at which clocks of a place show what wall shows in UTC. [time.Date] does not
// say which one it returns where there are two, or none.
func at(wall time.Time, loc *time.Location) time.Time {
	by := func(reference time.Time) time.Time {
		_, offset := reference.In(loc).Zone()
		return wall.Add(-time.Duration(offset) * time.Second).In(loc)
	}
	before, after := by(wall.Add(-day)), by(wall.Add(day))
	if shown := after.Format(time.DateTime); before.Format(time.DateTime) != shown && shown == wall.Format(time.DateTime) {
		return after
	}
	return before
}
