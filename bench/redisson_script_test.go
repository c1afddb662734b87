package bench

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
	interop "github.com/delayq/delayq/interop/redisson"
	"github.com/delayq/delayq/redisson"
)

// BenchmarkRedissonScript measures for how long, in ms, the longest script blocks the server while
// 2,000 messages are moved that become due at once, among 100,000 whose delays are random over an
// hour. Pushes are left out. It is the least of three rounds: a server that has to wait for a
// processor makes a script look long.
//
//	go-take-ms     32 workers of this side take what this side pushed
//	go-maintain-ms a handle without workers hands it over to Java
//	go-java-ms     the workers take what Redisson 4.7.0 pushed, whose numbers do not tell where
//	               they are in the index list
//	go-1M-ms       the workers, among a million; go-1M-noindex-ms without the index list
//	3.52.0-ms 4.7.0-ms
//
// Goals: 5 for the first two, 25 and 2 among a million.
func BenchmarkRedissonScript(b *testing.B) {
	few, many := load.UnlessShort(100_000, 10_000), load.UnlessShort(1_000_000, 20_000)
	take := scriptInGo(b, few, takeDue)
	b.ReportMetric(load.Millis(take), "go-take-ms")
	for _, release := range releases {
		java := scriptInJava(b, release, few)
		b.ReportMetric(load.Millis(java), release+"-ms")
		b.ReportMetric(float64(java)/float64(take), release+"/go")
	}
	b.ReportMetric(load.Millis(scriptOnJavas(b, few)), "go-java-ms")
	b.ReportMetric(load.Millis(scriptInGo(b, many, takeDue, redisson.NoIndex())), "go-1M-noindex-ms")
	b.ReportMetric(load.Millis(scriptInGo(b, many, takeDue)), "go-1M-ms")
	b.ReportMetric(load.Millis(scriptInGo(b, few, maintainOnly)), "go-maintain-ms")
	load.OnePass(b)
}

const (
	becomeDue = 2000
	zset      = "redisson_delay_queue_timeout:{bench}"
)

// scriptInGo pushes with a handle that is closed again, since nothing may move a message before the
// measurement.
func scriptInGo(b *testing.B, pending int, move mover, opts ...redisson.Option) time.Duration {
	b.Helper()
	server := load.OwnRedis(b)
	q := oursOn(b, server, opts...)
	start, r := time.Now().Add(time.Hour), newRand()
	fill(b, q, pending, func() time.Time { return start.Add(time.Duration(r.Int64N(int64(time.Hour)))) })
	load.Must(b, q.Close())
	return longestScript(b, server, pending, func() func() { return move(b, server, opts...) })
}

// scriptOnJavas measures Go on messages that Java has pushed.
func scriptOnJavas(b *testing.B, pending int) time.Duration {
	b.Helper()
	q := filledByJava(b, releases[len(releases)-1], pending)
	q.JVM.Kill()
	return longestScript(b, q.Redis, pending, func() func() { return takeDue(b, q.Redis) })
}

func scriptInJava(b *testing.B, release string, pending int) time.Duration {
	b.Helper()
	q := filledByJava(b, release, pending)
	load.Must(b, q.Destroy(context.Background()))
	return longestScript(b, q.Redis, pending, func() func() {
		load.Must(b, q.Hold(context.Background()))
		return func() { load.Must(b, q.Destroy(context.Background())) }
	})
}

func filledByJava(b *testing.B, release string, pending int) load.Java {
	b.Helper()
	q := load.OpenJava(b, release)
	q.Offer(b, interop.Load{
		Count: pending, MinDelay: time.Hour, MaxDelay: 2 * time.Hour, Threads: 64, Prefix: "pending",
	})
	return q
}

// A mover opens the queue, moves due messages, and returns a function that stops it.
type mover func(b *testing.B, server load.Redis, opts ...redisson.Option) (stop func())

func takeDue(b *testing.B, server load.Redis, opts ...redisson.Option) (stop func()) {
	b.Helper()
	q := oursOn(b, server, opts...)
	stopWorkers := load.Consume(b, func(*delayq.Delivery) {}, q)
	return func() {
		stopWorkers()
		load.Must(b, q.Close()) // an open handle would maintain the queue
	}
}

// maintainOnly pops from the destination list at its head, as Java does, or it would fill up.
func maintainOnly(b *testing.B, server load.Redis, opts ...redisson.Option) (stop func()) {
	b.Helper()
	q := oursOn(b, server, opts...)
	client := server.Client(b)
	stopPops := load.Until(b, 1, func(ctx context.Context, _ int) error {
		for ctx.Err() == nil {
			client.BLPop(ctx, time.Second, "bench")
		}
		return nil
	})
	return func() {
		stopPops()
		load.Must(b, q.Close())
	}
}

// longestScript makes the first messages due, whose places in the index list are random, and
// returns how long the longest script ran until they were all gone.
func longestScript(b *testing.B, server load.Redis, pending int, move func() (stop func())) (least time.Duration) {
	b.Helper()
	ctx := context.Background()
	client := server.Client(b)
	load.Must(b, client.ConfigSet(ctx, "slowlog-max-len", "100000").Err())
	load.Must(b, client.ConfigSet(ctx, "slowlog-log-slower-than", "100").Err())
	for round := range 3 {
		makeDue(b, client)
		load.Must(b, client.Do(ctx, "slowlog", "reset").Err())
		stop := move()
		awaitLeft(b, client, pending-(round+1)*becomeDue)
		stop()
		if longest := longestOf(b, client); round == 0 || longest < least {
			least = longest
		}
	}
	return least
}

func awaitLeft(b *testing.B, client *redis.Client, left int) {
	b.Helper()
	for end := time.Now().Add(drainWithin); ; time.Sleep(10 * time.Millisecond) {
		n, err := client.ZCard(context.Background(), zset).Result()
		load.Must(b, err)
		if n == int64(left) {
			return
		}
		if time.Now().After(end) {
			b.Fatalf("%d messages wait after %v, want %d", n, drainWithin, left)
		}
	}
}

func makeDue(b *testing.B, client *redis.Client) {
	b.Helper()
	ctx := context.Background()
	first, err := client.ZRange(ctx, zset, 0, becomeDue-1).Result()
	load.Must(b, err)
	now := time.Now().UnixMilli()
	due := make([]redis.Z, len(first))
	for i, m := range first {
		due[i] = redis.Z{Score: float64(now), Member: m}
	}
	load.Must(b, client.ZAddXX(ctx, zset, due...).Err())
}

func longestOf(b *testing.B, client *redis.Client) time.Duration {
	b.Helper()
	logged, err := client.SlowLogGet(context.Background(), -1).Result()
	load.Must(b, err)
	var took []time.Duration
	for _, l := range logged {
		if len(l.Args) > 0 && strings.HasPrefix(strings.ToLower(l.Args[0]), "eval") {
			took = append(took, l.Duration)
		}
	}
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	b.Logf("%d scripts of more than 0.1 ms: %v at p50, %v at p95, %v at most", len(took), took[len(took)/2], took[len(took)*95/100], took[len(took)-1])
	return took[len(took)-1]
}
