package dashboard

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

// figures is a queue's state as the page and its script show it. Texts, Paths and Widths are for
// the elements that carry these names.
type figures struct {
	Texts  map[string]string  `json:"t"`
	Paths  map[string]string  `json:"d,omitempty"` // of charts
	Widths map[string]float64 `json:"w,omitempty"` // of bars, 0 to 100
	Paused bool               `json:"paused"`
	Failed bool               `json:"failed"`
}

const unknownCount = "?" // explained on the page

// figuresOf describes the samples of a queue. Charts are for its own page.
func figuresOf(samples []sample, charts bool) figures {
	f := figures{Texts: make(map[string]string)}
	if len(samples) == 0 {
		f.Texts["problem"] = "The store has not replied yet."
		f.Failed = true
		return f
	}
	last := samples[len(samples)-1]
	if last.err != nil {
		f.Failed = true
		f.Texts["problem"] = problem(last.err)
		return f
	}
	s := last.stats
	f.Paused = s.Paused
	f.Texts["problem"] = ""
	f.Texts["scheduled"], f.Texts["ready"] = count(s.Scheduled), count(s.Ready)
	f.Texts["inflight"], f.Texts["dead"] = count(s.InFlight), count(s.Dead)
	f.Texts["oldest"] = oldest(s)
	f.Texts["head"] = head(s, last.at)
	f.Texts["in"], f.Texts["out"] = unknownCount, unknownCount
	if s.Activity.Pushed != delayq.Unknown {
		f.Texts["in"], f.Texts["out"] = rateText(rate(samples, pushed)), rateText(rate(samples, acked))
	}
	f.Texts["late50"], f.Texts["late99"] = late(samples, 0.5), late(samples, 0.99)
	f.Texts["pause"] = pauseText(s)
	f.Texts["quarantined"] = ""
	if s.Quarantined > 0 {
		f.Texts["quarantined"] = count(s.Quarantined) + " messages of other programs cannot be read, and are kept aside."
	}
	if charts {
		f.charts(samples)
		f.histogram(s)
	}
	return f
}

// problem is an error for the user of a page, who sees which queue it is about.
func problem(err error) string {
	switch {
	case errors.Is(err, errNoQueue):
		return "This queue is gone."
	case errors.Is(err, delayq.ErrUnsupported):
		return "This store cannot count its messages."
	case errors.Is(err, delayq.ErrUnavailable):
		return "The store cannot be reached for now: " + short(err.Error(), 300)
	default:
		return short(err.Error(), 300)
	}
}

func oldest(s delayq.Stats) string {
	switch {
	case s.OldestReady == delayq.Unknown:
		return unknownCount
	case s.Ready == 0:
		return "–"
	default:
		return span(s.OldestReady)
	}
}

func head(s delayq.Stats, now time.Time) string {
	switch {
	case s.Scheduled == delayq.Unknown:
		return unknownCount
	case s.HeadDue.IsZero():
		return "–"
	default:
		return relative(s.HeadDue, now)
	}
}

func pauseText(s delayq.Stats) string {
	switch {
	case !s.Paused:
		return ""
	case s.PausedUntil.IsZero():
		return "paused"
	default:
		return "paused until " + clock(s.PausedUntil)
	}
}

// rate is how fast a count has grown over the last ten seconds, -1 where that is not known.
func rate(samples []sample, count func(delayq.Stats) float64) float64 {
	last := samples[len(samples)-1]
	for i := len(samples) - 2; i >= 0; i-- {
		s := samples[i]
		if s.err != nil || last.err != nil || last.at.Sub(s.at) > 15*time.Second {
			break
		}
		if elapsed := last.at.Sub(s.at); elapsed >= 10*time.Second || i == 0 {
			grown := count(last.stats) - count(s.stats)
			if count(s.stats) < 0 || grown < 0 { // the store does not count, or has begun again
				break
			}
			return grown / elapsed.Seconds()
		}
	}
	return -1
}

func rateText(v float64) string {
	if v < 0 {
		return "–"
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}

// late is how late that share of the messages came to workers, at most, since the first sample.
func late(samples []sample, share float64) string {
	last := samples[len(samples)-1].stats.Activity
	if last.Pushed == delayq.Unknown {
		return unknownCount
	}
	first := samples[slices.IndexFunc(samples, func(s sample) bool { return s.err == nil })].stats.Activity
	h := last.Lateness.Since(first.Lateness)
	if h == (delayq.LatenessHistogram{}) {
		return "–"
	}
	bounds := delayq.LatenessBounds()
	d, most := h.Quantile(share), bounds[len(bounds)-1]
	if d > most {
		return "> " + span(most)
	}
	return "≤ " + span(d)
}

// The size of a chart, in units of its own.
const (
	chartWidth  = 300.0
	chartHeight = 48.0
)

func pushed(s delayq.Stats) float64 { return float64(s.Activity.Pushed) }
func acked(s delayq.Stats) float64  { return float64(s.Activity.Acked) }

// series are the charts of a queue's page.
var series = []struct {
	name  string
	value func(delayq.Stats) float64
	text  func(float64) string
	rate  bool // the chart shows how fast the value grows
}{
	{"scheduled", func(s delayq.Stats) float64 { return float64(s.Scheduled) }, countText, false},
	{"ready", func(s delayq.Stats) float64 { return float64(s.Ready) }, countText, false},
	{"inflight", func(s delayq.Stats) float64 { return float64(s.InFlight) }, countText, false},
	{"dead", func(s delayq.Stats) float64 { return float64(s.Dead) }, countText, false},
	{"oldest", func(s delayq.Stats) float64 { return float64(s.OldestReady) }, func(v float64) string { return span(time.Duration(v)) }, false},
	{"in", pushed, rateText, true},
	{"out", acked, rateText, true},
}

func countText(v float64) string { return count(int64(v)) }

func (f *figures) charts(samples []sample) {
	f.Paths = make(map[string]string)
	first, last := samples[0].at, samples[len(samples)-1].at
	window := max(last.Sub(first), time.Minute)
	for _, c := range series {
		top := -1.0
		values := make([]float64, len(samples)) // -1 for a gap
		for i, s := range samples {
			switch {
			case s.err != nil:
				values[i] = -1
			case c.rate:
				values[i] = rate(samples[:i+1], c.value)
			default:
				values[i] = c.value(s.stats)
			}
			top = max(top, values[i])
		}
		var path strings.Builder
		verb := "M"
		for i, s := range samples {
			v := values[i]
			if v < 0 {
				verb = "M"
				continue
			}
			x := chartWidth - chartWidth*float64(last.Sub(s.at))/float64(window)
			y := chartHeight - 1
			if top > 0 {
				y -= (chartHeight - 3) * v / top
			}
			fmt.Fprintf(&path, "%s%.1f %.1f", verb, x, y)
			verb = "L"
		}
		f.Paths[c.name] = path.String()
		f.Texts["top-"+c.name] = ""
		if top >= 0 {
			f.Texts["top-"+c.name] = "highest " + c.text(top)
		}
	}
	f.Texts["since"] = "the last " + span(last.Sub(first).Truncate(time.Second))
	if len(samples) == 1 {
		f.Texts["since"] = "since now"
	}
}

func (f *figures) histogram(s delayq.Stats) {
	f.Widths = make(map[string]float64)
	f.Texts["estimated"] = ""
	if s.DueEstimated {
		f.Texts["estimated"] = "In part an estimate from a sample of the messages; the sum is exact."
	}
	top := int64(1)
	for _, n := range s.Due {
		top = max(top, n)
	}
	for i, label := range backend.DueLabels() {
		f.Texts["due-"+label] = count(s.Due[i])
		f.Widths["due-"+label] = 100 * float64(max(s.Due[i], 0)) / float64(top)
	}
}

// count writes a number with commas.
func count(n int64) string {
	if n == delayq.Unknown {
		return unknownCount
	}
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// span writes a duration with its two largest units.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + span(-d)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	units := []struct {
		name string
		size time.Duration
	}{{"y", 365 * 24 * time.Hour}, {"d", 24 * time.Hour}, {"h", time.Hour}, {"min", time.Minute}, {"s", time.Second}}
	for i, u := range units {
		if n := d / u.size; n > 0 {
			text := fmt.Sprintf("%d %s", n, u.name)
			if i+1 < len(units) {
				if rest := d % u.size / units[i+1].size; rest > 0 {
					text += fmt.Sprintf(" %d %s", rest, units[i+1].name)
				}
			}
			return text
		}
	}
	return "0 s"
}

// relative says how far a time is from now.
func relative(t, now time.Time) string {
	switch d := t.Sub(now); {
	case t.IsZero():
		return "–"
	case d > 0:
		return "in " + span(d)
	default:
		return span(-d) + " ago"
	}
}

// clock writes a time as UTC.
func clock(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}
