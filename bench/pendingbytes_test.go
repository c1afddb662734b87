package bench

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq"
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
	return unlessShort([]int{1_000, 10_000, 100_000, 1_000_000}, []int{1_000, 10_000})
}

func pendingCost(b *testing.B, t target, pending int) {
	server := ownRedis(b)
	store, _ := t.connect(b, server)
	q, client := open(b, store, "bench"), server.Client(b)
	due := farAhead(time.Now())
	cancelAll(b, q, fill(b, q, 1, due)) // loads the scripts, which do not count
	before := usedMemory(b, client)
	fill(b, q, pending, due)
	b.ReportMetric(float64(usedMemory(b, client)-before)/float64(pending), "B/pending")
	serverCost(b, server, q, pending)
	onePass(b)
}

func pendingOnRabbit(b *testing.B) {
	server := testenv.RabbitMQ(b, testenv.PrivateRabbit()) // others would use memory too
	for _, pending := range unlessShort([]int{10_000, 20_000}, []int{1_000}) {
		b.Run("pending="+strconv.Itoa(pending), func(b *testing.B) {
			q := onRabbit(b, server.VhostURL(server.Vhost(b)))
			fill(b, q, 1, farAhead(time.Now())) // declares the queues, which do not count
			before := memoryOf(b, server)
			fill(b, q, pending, farAhead(time.Now()))
			b.ReportMetric(float64(memoryOf(b, server)-before)/float64(pending), "B/pending")
			onePass(b)
		})
	}
}

func memoryOf(b *testing.B, server *testenv.RabbitServer) int {
	b.Helper()
	out := server.Ctl("eval", "[erlang:garbage_collect(P) || P <- processes()], erlang:memory(total).")
	n, err := strconv.Atoi(strings.TrimSpace(out))
	must(b, err)
	return n
}

// serverCost takes messages through their lives while the others wait.
func serverCost(b *testing.B, server *testenv.RedisServer, q delayq.Queue, pending int) {
	b.Helper()
	client, n := server.Client(b), unlessShort(20_000, 1_000)
	start := cpuTime(b, client)
	now := time.Now()
	t := newTally(make([]time.Time, n))
	for i := range t.due {
		t.due[i] = now
	}
	pushAll(b, q, t)
	pushed := cpuTime(b, client)
	drainAmong(b, q, t, pending)
	taken := cpuTime(b, client)
	b.ReportMetric(micros(pushed-start)/float64(n), "push-us/op")
	b.ReportMetric(micros(taken-pushed)/float64(n), "take-us/op")
}

// drainAmong is consume for a queue that keeps messages.
func drainAmong(b *testing.B, q delayq.Queue, t *tally, pending int) {
	b.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- q.Consume(ctx, t.handle, delayq.Workers(32)) }()
	t.wait(b)
	stop()
	must(b, <-ended)
	t.mustHold(b)
	mustHold(b, q, pending)
}

// cpuTime is the server's processor time.
func cpuTime(b *testing.B, c *redis.Client) time.Duration {
	b.Helper()
	return seconds(b, c, "used_cpu_user") + seconds(b, c, "used_cpu_sys")
}

func seconds(b *testing.B, c *redis.Client, field string) time.Duration {
	b.Helper()
	s, err := strconv.ParseFloat(infoField(b, c, "cpu", field), 64)
	must(b, err)
	return time.Duration(s * float64(time.Second))
}

func usedMemory(b *testing.B, c *redis.Client) int {
	b.Helper()
	n, err := strconv.Atoi(infoField(b, c, "memory", "used_memory"))
	must(b, err)
	return n
}

func infoField(b *testing.B, c *redis.Client, section, field string) string {
	b.Helper()
	info, err := c.Info(context.Background(), section).Result()
	must(b, err)
	_, after, _ := strings.Cut(info, "\r\n"+field+":")
	value, _, _ := strings.Cut(after, "\r\n")
	return value
}
