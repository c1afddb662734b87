package chaos

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
)

// Gauge is something that must not grow for as long as the load stays the same.
type Gauge struct {
	Name  string
	Bytes bool  // its unit; else it counts
	Bound int64 // growth up to here is noise
}

// Meter reads some gauges at once.
type Meter struct {
	Gauges []Gauge
	Read   func(context.Context) ([]int64, error)
}

// Bounds of growth. A leak adds up with the messages or with the faults, of which an hour has a million and hundreds on each backend: it soon passes any
// bound. So bounds leave room for what comes and goes: connections of a pool, each with goroutines at both ends and in a proxy between them, and buffers
// that stay as large as they once had to be.
const (
	moreGoroutines  = 25
	moreFiles       = 15
	moreHeap        = 4 << 20 // of a million messages 4 bytes each
	moreRedisMemory = 2 << 20
	moreConnections = 10
)

// ProcessMeter reads what this process holds: goroutines, file descriptors, and the heap that is still in use when the garbage is gone.
func ProcessMeter() Meter {
	return Meter{
		Gauges: []Gauge{{"goroutines", false, moreGoroutines}, {"files", false, moreFiles}, {"heap", true, moreHeap}},
		Read: func(context.Context) ([]int64, error) {
			files, err := os.ReadDir("/dev/fd") // on Linux this is /proc/self/fd
			if err != nil {
				return nil, fmt.Errorf("counting file descriptors: %w", err)
			}
			return []int64{int64(runtime.NumGoroutine()), int64(len(files)), heapInUse()}, nil
		},
	}
}

// heapInUse collects twice: what a sync.Pool holds outlives one collection.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// RedisMeter reads what a Redis server holds: memory, keys and connections. An empty queue has no keys, so not one may be left over.
func RedisMeter(c redis.UniversalClient) Meter {
	return Meter{
		Gauges: []Gauge{{"store memory", true, moreRedisMemory}, {"keys", false, 0}, {"connections", false, moreConnections}},
		Read: func(ctx context.Context) ([]int64, error) {
			keys, err := c.DBSize(ctx).Result()
			if err != nil {
				return nil, fmt.Errorf("counting keys: %w", err)
			}
			text, err := c.Info(ctx, "memory", "clients").Result()
			if err != nil {
				return nil, fmt.Errorf("asking for memory: %w", err)
			}
			return []int64{infoLine(text, "used_memory"), keys, infoLine(text, "connected_clients")}, nil
		},
	}
}

// infoLine is a figure of INFO; -1 where there is none.
func infoLine(text, key string) int64 {
	for line := range strings.SplitSeq(text, "\r\n") {
		if value, ok := strings.CutPrefix(line, key+":"); ok {
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				return n
			}
		}
	}
	return -1
}

// DepthMeter counts the messages of a queue, dead letters included. It opens the queue anew for each reading: a reader of its own would be seen by none of
// the faults that strike between them.
func DepthMeter(b backend.Backend, queue string) Meter {
	return Meter{
		Gauges: []Gauge{{"depth", false, 0}},
		Read: func(ctx context.Context) ([]int64, error) {
			q, err := b.Open(ctx, queue, quiet())
			if err != nil {
				return nil, fmt.Errorf("opening the queue to count: %w", err)
			}
			defer func() { _ = q.Close() }()
			s, err := q.Stats(ctx)
			if err != nil {
				return nil, fmt.Errorf("counting messages: %w", err)
			}
			return []int64{s.Scheduled + s.Ready + s.InFlight + s.Dead + s.Quarantined}, nil
		},
	}
}

// Calm waits until the goroutines of what has been closed have ended: until their number stays the same for a while, or ctx ends.
func Calm(ctx context.Context, still time.Duration) {
	last, since := runtime.NumGoroutine(), time.Now()
	for ctx.Err() == nil && time.Since(since) < still {
		time.Sleep(still / 20) // between two looks; what ends the wait is that nothing changes
		if n := runtime.NumGoroutine(); n != last {
			last, since = n, time.Now()
		}
	}
}

// Round is what was done before a sample.
type Round struct {
	Messages int
	Load     time.Duration // for how long messages were pushed
	Faults   int
}

// Rate is how many messages there were in a second of load.
func (r Round) Rate() float64 { return float64(r.Messages) / r.Load.Seconds() }

// Watch samples gauges between the rounds of a soak, when everything is drained.
type Watch struct {
	Backend string
	Meters  []Meter

	rounds  []Round
	samples [][]int64
}

// Sample reads all gauges after a round.
func (w *Watch) Sample(ctx context.Context, r Round) error {
	var all []int64
	for _, m := range w.Meters {
		values, err := m.Read(ctx)
		if err != nil {
			return fmt.Errorf("sampling after round %d on %s: %w", len(w.rounds)+1, w.Backend, err)
		}
		all = append(all, values...)
	}
	w.rounds, w.samples = append(w.rounds, r), append(w.samples, all)
	return nil
}

// Rounds is the number of samples so far.
func (w *Watch) Rounds() int { return len(w.rounds) }

func (w *Watch) gauges() (all []Gauge) {
	for _, m := range w.Meters {
		all = append(all, m.Gauges...)
	}
	return all
}

// Growth is by how much a gauge has risen.
type Growth struct {
	Gauge
	From, To int64 // the lowest levels of the first and of the last third
}

// Leaks reports whether it rose beyond its bound.
func (g Growth) Leaks() bool { return g.To-g.From > g.Bound }

func (g Growth) String() string {
	return fmt.Sprintf("%s from %s to %s (bound +%s)", g.Name, g.show(g.From), g.show(g.To), g.show(g.Bound))
}

// MinRounds is how many samples it takes to judge: each third has one.
const MinRounds = 3

// Growths compares the lowest level of the last third of the samples with that of the first third. What a moment adds is gone in one of several samples;
// what leaks is in all of them. It returns nil for less than MinRounds.
func (w *Watch) Growths() []Growth {
	third := len(w.samples) / MinRounds
	if third == 0 {
		return nil
	}
	var all []Growth
	for i, g := range w.gauges() {
		all = append(all, Growth{g, lowest(w.samples[:third], i), lowest(w.samples[len(w.samples)-third:], i)})
	}
	return all
}

func lowest(samples [][]int64, gauge int) int64 {
	low := int64(math.MaxInt64)
	for _, s := range samples {
		low = min(low, s[gauge])
	}
	return low
}

// Leaks are the gauges that rose beyond their bounds.
func (w *Watch) Leaks() (found []Growth) {
	for _, g := range w.Growths() {
		if g.Leaks() {
			found = append(found, g)
		}
	}
	return found
}

// WriteTable writes a row for each round, and how much each gauge grew.
func (w *Watch) WriteTable(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	gauges := w.gauges()
	head := []any{w.Backend, "messages", "a second", "faults"}
	for _, g := range gauges {
		head = append(head, g.Name)
	}
	row(t, head...)
	for i, r := range w.rounds {
		cells := []any{i + 1, r.Messages, fmt.Sprintf("%.0f", r.Rate()), r.Faults}
		for j, g := range gauges {
			cells = append(cells, g.show(w.samples[i][j]))
		}
		row(t, cells...)
	}
	w.writeSum(t)
	return t.Flush()
}

func (w *Watch) writeSum(t io.Writer) {
	var sum Round
	for _, r := range w.rounds {
		sum = Round{sum.Messages + r.Messages, sum.Load + r.Load, sum.Faults + r.Faults}
	}
	total := []any{"all, growth", sum.Messages, fmt.Sprintf("%.0f", sum.Rate()), sum.Faults}
	bounds := []any{"bound", "", "", ""}
	for _, g := range w.Growths() {
		total, bounds = append(total, g.sign(g.To-g.From)), append(bounds, g.sign(g.Bound))
	}
	row(t, total...)
	row(t, bounds...)
}

func (g Gauge) show(n int64) string {
	if g.Bytes {
		return fmt.Sprintf("%.2f MiB", float64(n)/(1<<20))
	}
	return strconv.FormatInt(n, 10)
}

func (g Gauge) sign(n int64) string {
	if n > 0 {
		return "+" + g.show(n)
	}
	return g.show(n)
}
