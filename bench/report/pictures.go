package main

import (
	"cmp"
	"slices"
	"strings"

	"gonum.org/v1/plot/plotter"

	"github.com/delayq/delayq/bench/internal/raw"
	"github.com/delayq/delayq/bench/report/chart"
)

// ourSides are delayq's in bench/peers, and the targets of bench without the name of a claim mode.
// Pictures have them in this order, so that a side has one colour in all.
var ourSides = []string{"zsetpoll", "redisson", "keyspace", "memory", "rabbitmq", "sqlite", "postgres", "serve"}

func isOurs(side string) bool { return slices.Contains(ourSides, side) }

// rivals are the sides that pictures of lines have room for. The table has all.
var rivals = []string{"zsetpoll", "asynq", "asynq-tuned", "beanstalkd", "nats", "river", "redisson-java", timers}

// timers are bare ones of Go, in bench/peers.
const timers = "afterfunc"

// inProcess sides have no server, and would make the bars of all others short.
var inProcess = []string{"memory", timers}

// pictures are SVG files by name. Those for which nothing was measured are left out.
func pictures(f *raw.File) map[string][]byte {
	all := make(map[string][]byte)
	for name, draw := range map[string]func(*raw.File) (svg []byte, measured bool){
		"lateness": latenessOfOurs, "lateness-peers": latenessOfPeers, "wakeup": wakeUps, "burst": timeline, "depth": depth,
		"push": barsOf("Pushes of 256 goroutines, a call a message", singlePeers, "msgs/s", "messages a second"),
		"push-batch": barsOf("Pushes of one goroutine, 100 messages a call where there are batches", batchPeers, "msgs/s",
			"messages a second"),
		"drain":   barsOf("Messages due at one instant, 32 workers", drainPeers, "msgs/s", "messages a second, from the instant to the last ack"),
		"pending": barsOf("A pending message of 100 bytes", depthPeers, "B/pending", "bytes of memory"),
	} {
		if svg, measured := draw(f); measured {
			all[name] = svg
		}
	}
	return all
}

func lines(l chart.Lines) (svg []byte, measured bool) {
	if len(l.Series) == 0 {
		return nil, false
	}
	return l.SVG(), true
}

// latenessOfOurs has bare timers too, those that took turns with zsetpoll.
func latenessOfOurs(f *raw.File) ([]byte, bool) {
	series := distributions(f, "BenchmarkLateness", "")
	for _, s := range distributions(f, "BenchmarkLateness", "bare") {
		if s.Name == "zsetpoll" {
			s.Name = "time.AfterFunc"
			series = append(series, s)
		}
	}
	return lines(latenessChart("Lateness of delayq's backends, 2,000 messages a second", series))
}

func latenessOfPeers(f *raw.File) ([]byte, bool) {
	var series []chart.Series
	for _, side := range rivals {
		if r, ok := record(f, latePeers+side); ok && r.Lateness != nil {
			series = append(series, distribution(side, r.Lateness))
		}
	}
	return lines(latenessChart("Lateness of other libraries, 2,000 messages a second", series))
}

func wakeUps(f *raw.File) ([]byte, bool) {
	return lines(chart.Lines{
		Title:  "From a push to an idle consumer",
		X:      chart.Axis{Title: "time from push to delivery, ms (log)", Scale: chart.Log},
		Y:      chart.Axis{Title: "share of the messages", Scale: chart.Nines},
		Series: distributions(f, "BenchmarkWakeUp", ""),
	})
}

// distributions are of the backends with their usual settings.
func distributions(f *raw.File, benchmark, side string) (series []chart.Series) {
	for _, r := range f.Records {
		if store, ok := target(r.Benchmark, benchmark); ok && r.Lateness != nil && r.Side == side {
			series = append(series, distribution(store, r.Lateness))
		}
	}
	return inOrder(series)
}

func inOrder(series []chart.Series) []chart.Series {
	slices.SortStableFunc(series, func(a, b chart.Series) int {
		return cmp.Compare(slices.Index(ourSides, a.Name), slices.Index(ourSides, b.Name))
	})
	return series
}

const leastShown = 0.05 // ms: below it, messages count as punctual

func latenessChart(title string, series []chart.Series) chart.Lines {
	return chart.Lines{
		Title:  title,
		X:      chart.Axis{Title: "lateness, ms (log)", Scale: chart.Log, From: leastShown},
		Y:      chart.Axis{Title: "share of the messages not later", Scale: chart.Nines},
		Series: series,
	}
}

// distribution begins with the share of the early ones, and says it, for where all are early there
// is no line.
func distribution(name string, d *raw.Distribution) chart.Series {
	s := chart.Series{Name: name}
	early := float64(d.Early) / float64(max(1, d.Messages))
	if early > 0 {
		s.Name += ", " + percent(early) + " early"
	}
	for _, p := range d.Points {
		if late := float64(p.Late) / 1e6; p.Share > early || p.Share == 1 {
			if len(s.Points) == 0 {
				s.Points = append(s.Points, plotter.XY{X: late, Y: early})
			}
			s.Points = append(s.Points, plotter.XY{X: late, Y: p.Share})
		}
	}
	return s
}

// timeline is the share that has arrived, for the sides differ in how many there were.
func timeline(f *raw.File) ([]byte, bool) {
	var series []chart.Series
	most := 0
	for _, side := range slices.Concat(rivals, ourSides[1:]) {
		r, ok := record(f, drainPeers+side)
		if !ok || r.Arrivals == nil || len(r.Arrivals.Counts) == 0 || side == timers || len(series) == chart.MaxSeries {
			continue
		}
		most = max(most, r.Arrivals.Messages)
		series = append(series, arrivals(side, r.Arrivals, most))
	}
	return lines(chart.Lines{
		Title:  "A burst of messages due at one instant, 32 workers",
		X:      chart.Axis{Title: "time since they are due, s (log)", Scale: chart.Log, From: 0.01},
		Y:      chart.Axis{Title: "messages delivered, %", To: 100},
		Series: series,
	})
}

func arrivals(side string, t *raw.Timeline, most int) chart.Series {
	s := chart.Series{Name: side}
	if t.Messages < most {
		s.Name += " (" + chart.Number(float64(t.Messages)) + ")"
	}
	arrived := 0
	for i, n := range t.Counts {
		arrived += n
		end := float64(t.Start+int64(i+1)*t.Slice) / 1e9
		if n > 0 || i == 0 || t.Counts[i-1] > 0 {
			s.Points = append(s.Points, plotter.XY{X: end, Y: 100 * float64(arrived) / float64(t.Messages)})
		}
	}
	return s
}

var depths = []struct {
	name    string
	pending float64
}{{"1k", 1e3}, {"10k", 1e4}, {"100k", 1e5}, {"1M", 1e6}}

func depth(f *raw.File) ([]byte, bool) {
	var series []chart.Series
	for _, r := range f.Results {
		side, ok := target(strings.TrimSuffix(r.Benchmark, "/due=now"), "BenchmarkDepth")
		if !ok {
			continue
		}
		s := chart.Series{Name: side}
		for _, d := range depths {
			if cost, ok := r.Metrics["ns/msg-at-"+d.name]; ok {
				s.Points = append(s.Points, plotter.XY{X: d.pending, Y: cost / 1e3})
			}
		}
		series = append(series, s)
	}
	return lines(chart.Lines{
		Title: "Push, receive and ack of one message after the other, while others wait",
		X:     chart.Axis{Title: "pending messages (log)", Scale: chart.Log}, Y: chart.Axis{Title: "µs a message (log)", Scale: chart.Log},
		Series: inOrder(series), Marked: true,
	})
}

// barsOf draws the metrics below a benchmark that have one unit, the greatest first.
func barsOf(title, benchmark, unit, axis string) func(*raw.File) ([]byte, bool) {
	return func(f *raw.File) ([]byte, bool) {
		var bars []chart.Bar
		for _, r := range sides(f, benchmark) {
			side := strings.TrimPrefix(r.Benchmark, benchmark)
			if value, ok := r.Metrics[unit]; ok && (unit != "msgs/s" || !slices.Contains(inProcess, side)) {
				bars = append(bars, chart.Bar{
					Name: side, Value: value, Least: r.Metrics["least-"+unit], Most: r.Metrics["most-"+unit], Ours: isOurs(side),
				})
			}
		}
		slices.SortStableFunc(bars, func(a, b chart.Bar) int { return cmp.Compare(b.Value, a.Value) })
		if len(bars) == 0 {
			return nil, false
		}
		return chart.Bars{Title: title, X: chart.Axis{Title: axis}, Bars: bars}.SVG(), true
	}
}

// sides are the lines right below a benchmark, each side once.
func sides(f *raw.File, benchmark string) (found []raw.Result) {
	for _, r := range f.Results {
		side, ok := strings.CutPrefix(r.Benchmark, benchmark)
		if !ok || strings.Contains(side, "/") {
			continue
		}
		found = slices.DeleteFunc(found, func(old raw.Result) bool { return old.Benchmark == r.Benchmark })
		found = append(found, r)
	}
	return found
}

// target is the backend of a line of bench, if it is one of a benchmark and has the usual settings.
func target(line, benchmark string) (side string, ok bool) {
	side, ok = strings.CutPrefix(line, benchmark+"/backend=")
	side = strings.TrimSuffix(side, "-script")
	return side, ok && isOurs(side)
}

func record(f *raw.File, benchmark string) (raw.Record, bool) {
	i := slices.IndexFunc(f.Records, func(r raw.Record) bool { return r.Benchmark == benchmark && r.Side == "" })
	if i < 0 {
		return raw.Record{}, false
	}
	return f.Records[i], true
}
