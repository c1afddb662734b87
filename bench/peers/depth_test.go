package peers

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/delayq/delayq/bench/internal/load"
)

// BenchmarkDepthPeers measures what waits: first 1,000 messages, due between an hour and a day
// ahead, then 100,000. What ours cost among a million is in bench.
//
//	us/msg-at-1k                what a message costs meanwhile: the time of 64 goroutines that
//	                            push 5,000 in batches, due at
//	us/msg-at-100k              the next whole second, and of 32 workers from the first of these
//	                            to the last; the lesser of two rounds
//	100k/1k                     the ratio of the two
//	B/pending                   what a waiting message of 100 bytes occupies, by the growth
//	                            between the two depths: of used_memory in Redis, of the heap for
//	                            what is in this process, of resident memory for beanstalkd
//	disk-B/pending              the same in files, for NATS, beanstalkd with a binlog, and
//	                            Postgres
//
// The sides do not run side by side here: each has the machine for itself.
func BenchmarkDepthPeers(b *testing.B) {
	describe(b)
	for _, p := range peersIn(b, depths) {
		b.Run(p.name, func(b *testing.B) {
			c := p.enter(b)
			defer c.leave()
			c.depth(b)
			load.OnePass(b)
		})
	}
}

func deepest() (messages int, name string) {
	if testing.Short() {
		return 5000, "5k"
	}
	return 100_000, "100k"
}

func (c *contestant) depth(b *testing.B) {
	b.Helper()
	const shallow = 1000
	deep, name := deepest()
	c.fill(b, shallow)
	atShallow := c.cost(b)
	before := c.mass(b) // with the records that a peer keeps of done messages
	c.fill(b, deep-shallow)
	c.reportMass(b, before, deep-shallow)
	atDeep := c.cost(b)
	if atShallow > 0 {
		b.ReportMetric(load.Micros(atShallow), "us/msg-at-1k")
		b.ReportMetric(load.Micros(atDeep), "us/msg-at-"+name)
		b.ReportMetric(float64(atDeep)/float64(atShallow), name+"/1k")
	}
}

func (c *contestant) fill(b *testing.B, n int) {
	b.Helper()
	if f, ok := c.system.(foreigner); ok {
		f.pushMany(b, n, 64)
		return
	}
	r := rand.New(rand.NewPCG(3, 4))
	const most = 50_000 // bounds the memory of this process
	for ; n > 0; n -= most {
		due := make([]time.Time, min(n, most))
		for i := range due {
			due[i] = time.Now().Add(time.Hour + time.Duration(r.Int64N(int64(23*time.Hour))))
		}
		c.pushTally(b, load.NewTally(due))
	}
}

func (c *contestant) mass(b *testing.B) weight {
	b.Helper()
	if s, ok := c.system.(weigher); ok {
		return s.weigh(b)
	}
	return weight{}
}

func (c *contestant) reportMass(b *testing.B, before weight, messages int) {
	b.Helper()
	after := c.mass(b)
	report := func(grown int64, unit string) {
		if grown > 0 {
			b.ReportMetric(float64(grown)/float64(messages), unit)
		}
	}
	report(after.memory-before.memory, "B/pending")
	report(after.disk-before.disk, "disk-B/pending")
}

// cost is the time to push and handle a message, or 0 for a side that cannot tell.
func (c *contestant) cost(b *testing.B) (least time.Duration) {
	b.Helper()
	if _, ok := c.system.(foreigner); ok {
		return 0
	}
	waiting, err := c.left(b.Context())
	load.Must(b, err)
	for range load.UnlessShort(2, 1) {
		load.Turn(func() {
			if took := c.costOnce(b, int(waiting)); least == 0 || took < least {
				least = took
			}
		})
	}
	return least
}

func (c *contestant) costOnce(b *testing.B, waiting int) time.Duration {
	b.Helper()
	messages := c.upTo(load.UnlessShort(5000, 200))
	due := time.Now().Truncate(time.Second).Add(load.UnlessShort(time.Second, 0))
	t := load.Burst(messages, due)
	start := time.Now()
	c.pushTally(b, t)
	pushed := time.Since(start)
	if c.coarse {
		time.Sleep(time.Until(due)) // as in a drain
	}
	stop := c.consume(b, t.Arrived)
	t.Wait()
	o := t.Outcome()
	c.drained(b, waiting+o.Lost)
	drained := time.Since(t.First)
	stop()
	c.keep(b, o)
	return (pushed + drained) / time.Duration(messages)
}
