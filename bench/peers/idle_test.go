//go:build unix

package peers

import (
	"syscall"
	"testing"
	"time"

	"github.com/delayq/delayq/bench/internal/load"
)

// A spender is a system whose server is a process that reports its processor time.
type spender interface {
	spent(tb testing.TB) time.Duration
}

// A tripper is a system whose server counts round trips.
type tripper interface{ trips(tb testing.TB) float64 }

// BenchmarkIdlePeers measures what an empty queue costs on which 32 workers wait, in a window of
// some seconds.
//
//	cpu-ms/s  processor time of this process and of the server, per second; for NATS the server is
//	          in this process
//	trips/s   how often a Redis server reads from a connection, round trips
//
// The sides do not run side by side here: nothing but one of them runs.
func BenchmarkIdlePeers(b *testing.B) {
	describe(b)
	for _, p := range peersIn(b, idles) {
		b.Run(p.name, func(b *testing.B) {
			c := p.enter(b)
			defer c.leave()
			c.idle(b)
			load.OnePass(b)
		})
	}
}

func (c *contestant) idle(b *testing.B) {
	b.Helper()
	stop := c.consume(b, func([]byte) { b.Error("an empty queue handed out a message") })
	time.Sleep(load.UnlessShort(time.Second, time.Second/10)) // until all workers wait
	trips, spent, start := c.tripsSoFar(b), c.spentSoFar(b), time.Now()
	time.Sleep(load.UnlessShort(3*time.Second, time.Second/5)) // the window
	took := time.Since(start).Seconds()
	b.ReportMetric(1000*(c.spentSoFar(b)-spent).Seconds()/took, "cpu-ms/s")
	if _, ok := c.system.(tripper); ok {
		const asked = 5 // by this benchmark itself, between the two counts
		b.ReportMetric(max(c.tripsSoFar(b)-trips-asked, 0)/took, "trips/s")
	}
	stop()
}

func (c *contestant) spentSoFar(b *testing.B) (d time.Duration) {
	b.Helper()
	if s, ok := c.system.(spender); ok {
		d = s.spent(b)
	}
	var used syscall.Rusage
	load.Must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return d + time.Duration(used.Utime.Nano()+used.Stime.Nano())
}

func (c *contestant) tripsSoFar(b *testing.B) float64 {
	b.Helper()
	if s, ok := c.system.(tripper); ok {
		return s.trips(b)
	}
	return 0
}
