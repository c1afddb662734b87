package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/delayq/delayq/bench/report/chart"
)

// notMeasured replaces a sentence where a run in part has no figures for it.
const notMeasured = "This was not measured."

// A reading is one side's figures.
type reading struct {
	side  string
	value float64
}

// read collects one unit of the sides of a benchmark, the least first.
func (p page) read(benchmark, unit string, wanted func(side string) bool) (all []reading) {
	for _, r := range sides(p.File, benchmark) {
		side := strings.TrimPrefix(r.Benchmark, benchmark)
		if v, ok := r.Metrics[unit]; ok && wanted(side) {
			all = append(all, reading{side, v})
		}
	}
	slices.SortStableFunc(all, func(a, b reading) int { return cmp.Compare(a.value, b.value) })
	return all
}

func others(side string) bool { return !isOurs(side) && side != timers }

// best puts the greatest first.
func best(all []reading) []reading {
	slices.Reverse(all)
	return all
}

// list is "a 1 ms, b 2 ms and c 3 ms".
func list(all []reading, write func(float64) string) string {
	var parts []string
	for _, r := range all {
		parts = append(parts, r.side+" "+write(r.value))
	}
	last := len(parts) - 1
	if last < 1 {
		return strings.Join(parts, "")
	}
	return strings.Join(parts[:last], ", ") + " and " + parts[last]
}

// table is list as a table that stands between two paragraphs.
func table(all []reading, write func(float64) string) string {
	var sides, values strings.Builder
	for _, r := range all {
		sides.WriteString("| " + r.side + " ")
		values.WriteString("| " + write(r.value) + " ")
	}
	return "\n\n" + sides.String() + "|\n" + strings.Repeat("|---", len(all)) + "|\n" + values.String() + "|\n\n"
}

func in(unit string) func(float64) string {
	return func(v float64) string { return chart.Number(v) + " " + unit }
}

// backends reads one unit of a benchmark of bench, by the usual settings of each backend.
func (p page) backends(benchmark, below, unit string) (all []reading) {
	for _, r := range p.Results {
		line, ok := strings.CutSuffix(r.Benchmark, below)
		side, ours := target(line, benchmark)
		if v, has := r.Metrics[unit]; ok && ours && has {
			all = append(all, reading{side, v})
		}
	}
	slices.SortStableFunc(all, func(a, b reading) int { return cmp.Compare(a.value, b.value) })
	return all
}

func (p page) Late() string {
	late := p.backends("BenchmarkLateness", "", "late-p99-ms")
	bare, ok := p.Metric("BenchmarkLateness/backend=zsetpoll-script", "bare-late-p99-ms")
	if len(late) == 0 || !ok {
		return notMeasured
	}
	return fmt.Sprintf("With delays of 1 to 3 s at 2,000 messages a second, 99 of 100 messages were no later than this:%s"+
		"Bare timers of Go, which forget everything with their process, had %s.", table(late, in("ms")), in("ms")(bare))
}

func (p page) Early() string {
	messages, early := 0, 0
	for _, r := range p.Records {
		_, here := target(r.Benchmark, "BenchmarkLateness")
		beside := isOurs(strings.TrimPrefix(r.Benchmark, latePeers))
		if r.Lateness != nil && r.Side == "" && (here || beside) {
			messages, early = messages+r.Lateness.Messages, early+r.Lateness.Early
		}
	}
	if messages == 0 {
		return notMeasured
	}
	text := fmt.Sprintf("delayq delivered %s messages of such loads, and %s of them early.", humanize.Comma(int64(messages)), none(early))
	hasty := p.read(latePeers, "early/op", func(side string) bool { return others(side) && p.isHasty(side) })
	if len(hasty) > 0 {
		text += " Others have a share of early ones: " + list(hasty, percent) + "."
	}
	return text
}

func (p page) isHasty(side string) bool {
	v, _ := p.Metric(latePeers+side, "early/op")
	return v > 0
}

func none(n int) string {
	if n == 0 {
		return "none"
	}
	return humanize.Comma(int64(n))
}

func (p page) Push() string {
	single := best(p.read(singlePeers, "msgs/s", isOurs))
	them := best(p.read(singlePeers, "msgs/s", others))
	batch := best(p.read(batchPeers, "msgs/s", isOurs))
	if len(single) == 0 || len(them) == 0 {
		return notMeasured
	}
	said := fmt.Sprintf("From 256 goroutines, a call a message, delayq takes this many messages a second:%sThe others take:%s"+
		"In batches of 100 from one goroutine:%s", table(single, chart.Number), table(them, chart.Number), table(batch, chart.Number))
	if atOnce := best(p.read(atOncePeers, "msgs/s", isOurs)); len(atOnce) > 0 {
		said += "From 8 goroutines with such batches:" + table(atOnce, chart.Number)
	}
	return strings.TrimSpace(said)
}

func (p page) Drain() string {
	drained := best(p.read(drainPeers, "msgs/s", isOurs))
	them := best(p.read(drainPeers, "msgs/s", others))
	if len(drained) == 0 || len(them) == 0 {
		return notMeasured
	}
	return fmt.Sprintf("32 workers drain this many a second:%sThe others drain:%s"+
		"The line of a side in the lower picture begins when it delivers the first, and where it is steep it delivers fast.",
		table(drained, chart.Number), table(them, chart.Number))
}

func (p page) Depth() string {
	flat := p.backends("BenchmarkDepth", "/due=now", "1M/1k")
	alone := p.backends("BenchmarkDepth", "/due=now", "ns/msg-at-1k")
	if len(alone) == 0 {
		return notMeasured
	}
	for i := range alone {
		alone[i].value /= 1e3
	}
	text := fmt.Sprintf("Among a thousand pending messages, a message costs from push to ack, with no other under way:%s", table(alone, in("µs")))
	if len(flat) > 0 {
		text += "Among a million it costs as many times as much:" + table(flat, in("×"))
	}
	return strings.TrimSpace(text)
}

func (p page) Rest() string {
	heavy := p.backends("BenchmarkPending", "/pending=100000", "B/pending")
	idle := p.backends("BenchmarkIdle", "/queues=1", "cmds/s")
	many := p.backends("BenchmarkIdle", "/queues=1000", "cmds/s")
	if len(heavy) == 0 || len(many) == 0 {
		return notMeasured
	}
	return fmt.Sprintf("Among 100,000, a pending message of 100 bytes takes this much of the memory of Redis: %s. "+
		"An idle queue with a worker that waits costs this many commands a second: %s; a thousand of them in one process, together, %s.",
		list(heavy, in("bytes")), list(idle, chart.Number), list(many, chart.Number))
}

func (p page) Wake() string {
	half := p.backends("BenchmarkWakeUp", "", "wake-p50-ms")
	most := p.backends("BenchmarkWakeUp", "", "wake-p99-ms")
	if len(half) == 0 {
		return notMeasured
	}
	return fmt.Sprintf("A consumer that waits gets a message that is due at once. Half of them come within this, the round trip of the push "+
		"included:%s99 of 100 come within:%s", table(half, in("ms")), strings.TrimRight(table(most, in("ms")), "\n"))
}
