package bench

import (
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/delayq/delayq/bench/internal/load"
)

// BenchmarkFootprint measures what a million and ten million pending messages of 100 bytes cost a
// process that holds them itself:
//
//	overhead-B/msg   heap beside the bodies, ids that the library made included; goal 64
//	gc-ms            a full garbage collection from start to end, as is ns/op
//	gc-pause-us      how long it stops the world, the median of all runs; goal 1,000
//	gc-pause-max-us  the longest, which on a busy machine is the scheduler's
//
// It takes some seconds and 2 GB, so -short skips it. Other backends keep messages elsewhere.
func BenchmarkFootprint(b *testing.B) {
	if testing.Short() {
		b.Skip("needs 2 GB of memory")
	}
	for _, t := range targets {
		if t.inProcess {
			for _, pending := range []int{1_000_000, 10_000_000} {
				b.Run("backend="+t.name+"/pending="+strconv.Itoa(pending), func(b *testing.B) { footprint(b, t, pending) })
			}
		}
	}
}

func footprint(b *testing.B, t target, pending int) {
	const chunk = 100_000
	b.Cleanup(debug.FreeOSMemory) // the next benchmark must not pay for this one
	q := t.queue(b)
	before := heapBytes()
	due := farAhead(time.Now())
	for range pending / chunk {
		fill(b, q, chunk, due)
	}
	overhead := float64(heapBytes()-before)/float64(pending) - load.BodySize
	var pauses []time.Duration
	for b.Loop() {
		runtime.GC()
		pauses = append(pauses, lastPause())
	}
	mustHold(b, q, pending)
	slices.Sort(pauses)
	b.ReportMetric(overhead, "overhead-B/msg")
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/1e6, "gc-ms")
	b.ReportMetric(load.Micros(pauses[len(pauses)/2]), "gc-pause-us")
	b.ReportMetric(load.Micros(pauses[len(pauses)-1]), "gc-pause-max-us")
}

// heapBytes returns the bytes of live objects, as the allocator rounds them.
func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// lastPause returns how long the last collection stopped the world, all its stops together.
func lastPause() time.Duration {
	var s debug.GCStats
	debug.ReadGCStats(&s)
	return s.Pause[0]
}
