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
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
)

// Gauge is a level that must not grow while the load stays the same.
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

// Bounds of growth. A leak adds up with the messages or with the faults, of which an hour has a
// million and hundreds on each backend, and soon passes any bound. Bounds leave room for
// connections of a pool, each with goroutines at both ends and in a proxy between them, and for
// buffers that stay as large as they once had to be.
const (
	moreGoroutines  = 25
	moreFiles       = 15
	moreHeap        = 4 << 20 // 4 bytes for each of a million messages
	moreRedisMemory = 2 << 20
	moreConnections = 10
)

// ProcessMeter reads the levels of this process: goroutines, file descriptors, and the heap that is
// in use after a garbage collection.
func ProcessMeter() Meter {
	return Meter{
		Gauges: []Gauge{{"goroutines", false, moreGoroutines}, {"files", false, moreFiles}, {"heap", true, moreHeap}},
		Read: func(context.Context) ([]int64, error) {
			files, err := os.ReadDir("/dev/fd") // on Linux this is /proc/self/fd
			if err != nil {
				return nil, fmt.Errorf("counting file descriptors: %w", err)
			}
			var m runtime.MemStats
			runtime.GC()
			runtime.GC() // the content of a sync.Pool outlives one collection
			runtime.ReadMemStats(&m)
			return []int64{int64(runtime.NumGoroutine()), int64(len(files)), int64(m.HeapAlloc)}, nil
		},
	}
}

// RedisMeter reads the levels of a Redis server: memory, keys and connections. An empty queue has
// no keys, so not one may be left over.
func RedisMeter(c redis.UniversalClient) Meter {
	return Meter{
		Gauges: []Gauge{{"store memory", true, moreRedisMemory}, {"keys", false, 0}, {"connections", false, moreConnections}},
		Read: func(ctx context.Context) ([]int64, error) {
			keys, err := c.DBSize(ctx).Result()
			if err != nil {
				return nil, fmt.Errorf("counting keys: %w", err)
			}
			memory, err := infoOf(ctx, c, "memory", "used_memory")
			if err != nil {
				return nil, err
			}
			connections, err := infoOf(ctx, c, "clients", "connected_clients")
			return []int64{memory, keys, connections}, err
		},
	}
}

// DepthMeter counts the messages of a queue, dead letters included. It opens the queue anew for
// each reading, since faults between two readings would hit a handle that stays open.
func DepthMeter(b backend.Backend, queue string) Meter {
	return Meter{
		Gauges: []Gauge{{"depth", false, 0}},
		Read: func(ctx context.Context) ([]int64, error) {
			q, err := b.Open(ctx, queue, quiet)
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

// Calm waits until the number of goroutines stays the same for a while, or ctx ends: goroutines of
// closed handles end a moment later.
func Calm(ctx context.Context, still time.Duration) {
	last, since := runtime.NumGoroutine(), time.Now()
	for ctx.Err() == nil && time.Since(since) < still {
		time.Sleep(still / 20) // between two looks; the condition ends the wait
		if n := runtime.NumGoroutine(); n != last {
			last, since = n, time.Now()
		}
	}
}

// Round is the work before a sample.
type Round struct {
	Messages int
	Load     time.Duration // the time in which messages were pushed
	Faults   int
}

func (r Round) cells(head any) []any {
	return []any{head, r.Messages, fmt.Sprintf("%.0f", float64(r.Messages)/r.Load.Seconds()), r.Faults}
}

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

func (w *Watch) gauges() (all []Gauge) {
	for _, m := range w.Meters {
		all = append(all, m.Gauges...)
	}
	return all
}

// Growth is the growth of a gauge.
type Growth struct {
	Gauge
	From, To int64 // the lowest levels of the first and of the last third
}

func (g Growth) String() string {
	return fmt.Sprintf("%s from %s to %s (bound +%s)", g.Name, g.show(g.From), g.show(g.To), g.show(g.Bound))
}

// MinRounds is the number of samples that it takes to judge: each third has one.
const MinRounds = 3

// Growths compares the lowest level of the last third of the samples with that of the first third.
// A momentary peak is missing in one of several samples; a leak is in all of them. Growths returns
// nil for less than MinRounds.
func (w *Watch) Growths() (all []Growth) {
	third := len(w.samples) / MinRounds
	if third == 0 {
		return nil
	}
	for i, g := range w.gauges() {
		growth := Growth{g, math.MaxInt64, math.MaxInt64}
		for j := range third {
			growth.From = min(growth.From, w.samples[j][i])
			growth.To = min(growth.To, w.samples[len(w.samples)-1-j][i])
		}
		all = append(all, growth)
	}
	return all
}

// Leaks returns the gauges that rose beyond their bounds.
func (w *Watch) Leaks() (found []Growth) {
	for _, g := range w.Growths() {
		if g.To-g.From > g.Bound {
			found = append(found, g)
		}
	}
	return found
}

// WriteTable writes a row for each round, and the growth of each gauge.
func (w *Watch) WriteTable(out io.Writer) error {
	t, gauges := newTable(out), w.gauges()
	head := []any{w.Backend, "messages", "a second", "faults"}
	for _, g := range gauges {
		head = append(head, g.Name)
	}
	t.row(head...)
	var sum Round
	for i, r := range w.rounds {
		sum = Round{sum.Messages + r.Messages, sum.Load + r.Load, sum.Faults + r.Faults}
		cells := r.cells(i + 1)
		for j, g := range gauges {
			cells = append(cells, g.show(w.samples[i][j]))
		}
		t.row(cells...)
	}
	total, bounds := sum.cells("all, growth"), []any{"bound", "", "", ""}
	for _, g := range w.Growths() {
		total, bounds = append(total, g.signed(g.To-g.From)), append(bounds, g.signed(g.Bound))
	}
	t.row(total...)
	t.row(bounds...)
	return t.Flush()
}

func (g Gauge) show(n int64) string {
	if g.Bytes {
		return fmt.Sprintf("%.2f MiB", float64(n)/(1<<20))
	}
	return strconv.FormatInt(n, 10)
}

func (g Gauge) signed(n int64) string {
	if n > 0 {
		return "+" + g.show(n)
	}
	return g.show(n)
}

// infoOf reads a line of INFO; 0 where there is none, or where it holds no number.
func infoOf(ctx context.Context, c redis.UniversalClient, section, key string) (int64, error) {
	text, err := c.Info(ctx, section).Result()
	if err != nil {
		return 0, fmt.Errorf("asking for %s: %w", key, err)
	}
	for line := range strings.SplitSeq(text, "\r\n") {
		if value, ok := strings.CutPrefix(line, key+":"); ok {
			n, _ := strconv.ParseInt(strings.TrimPrefix(value, "count="), 10, 64)
			return n, nil
		}
	}
	return 0, nil
}
