package bench

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
	"github.com/delayq/delayq/internal/testenv"
)

// BenchmarkPending measures what messages of 100 bytes, with ids that the library made, cost a
// server while so many wait there:
//
//	B/pending             memory a pending message, on Redis its used_memory; goal for zsetpoll
//	                      330
//	push-us/op take-us/op processor time of a Redis server for a message that is pushed, in full batches, and due at once, and
//	                      for its claim and its ack by 32 workers
//
// The costs are what ./bench/capacity reckons with: they are the server's alone, whatever else runs
// on the machine. RabbitMQ has its messages in memory too until their log is full, as so few of
// them never make it.
func BenchmarkPending(b *testing.B) {
	b.Run("backend=rabbitmq", pendingOnRabbit)
	overRedis(b, func(b *testing.B, t target) {
		for _, pending := range pendings() {
			b.Run("pending="+strconv.Itoa(pending), func(b *testing.B) { pendingCost(b, t, pending) })
		}
	})
}

func pendings() []int {
	return load.UnlessShort([]int{1_000, 10_000, 100_000, 1_000_000}, []int{1_000, 10_000})
}

func pendingCost(b *testing.B, t target, pending int) {
	server := load.OwnRedis(b)
	store, _ := t.connect(b, server)
	q := open(b, store, "bench")
	due := farAhead(time.Now())
	cancelAll(b, q, fill(b, q, 1, due)) // loads the scripts, which do not count
	before := server.Memory(b)
	fill(b, q, pending, due)
	b.ReportMetric(float64(server.Memory(b)-before)/float64(pending), "B/pending")
	serverCost(b, server, q, pending)
	load.OnePass(b)
}

func pendingOnRabbit(b *testing.B) {
	server := testenv.RabbitMQ(b, testenv.PrivateRabbit()) // others would use memory too
	for _, pending := range load.UnlessShort([]int{10_000, 20_000}, []int{1_000}) {
		b.Run("pending="+strconv.Itoa(pending), func(b *testing.B) {
			q := onRabbit(b, server.VhostURL(server.Vhost(b)))
			fill(b, q, 1, farAhead(time.Now())) // declares the queues, which do not count
			before := memoryOf(b, server)
			fill(b, q, pending, farAhead(time.Now()))
			b.ReportMetric(float64(memoryOf(b, server)-before)/float64(pending), "B/pending")
			load.OnePass(b)
		})
	}
}

func memoryOf(b *testing.B, server *testenv.RabbitServer) int {
	b.Helper()
	out := server.Ctl("eval", "[erlang:garbage_collect(P) || P <- processes()], erlang:memory(total).")
	n, err := strconv.Atoi(strings.TrimSpace(out))
	load.Must(b, err)
	return n
}

// serverCost takes messages through their lives while the others wait.
func serverCost(b *testing.B, server load.Redis, q delayq.Queue, pending int) {
	b.Helper()
	n := load.UnlessShort(20_000, 1_000)
	start := server.Spent(b)
	t := load.Burst(n, time.Now())
	load.PushBatches(b, q, t.Messages(), delayq.MaxBatch, 1)
	pushed := server.Spent(b)
	awaiting(b, t, load.Consume(b, t.Handle, q), q, pending)()
	taken := server.Spent(b)
	b.ReportMetric(load.Micros(pushed-start)/float64(n), "push-us/op")
	b.ReportMetric(load.Micros(taken-pushed)/float64(n), "take-us/op")
}
