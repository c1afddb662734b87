package bench

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/internal/testenv"
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
	few, many := unlessShort(100_000, 10_000), unlessShort(1_000_000, 20_000)
	take := scriptInGo(b, few, takeDue)
	b.ReportMetric(millis(take), "go-take-ms")
	for _, release := range releases {
		java := scriptInJava(b, release, few)
		b.ReportMetric(millis(java), release+"-ms")
		b.ReportMetric(float64(java)/float64(take), release+"/go")
	}
	b.ReportMetric(millis(scriptOnJavas(b, few)), "go-java-ms")
	b.ReportMetric(millis(scriptInGo(b, many, takeDue, redisson.NoIndex())), "go-1M-noindex-ms")
	b.ReportMetric(millis(scriptInGo(b, many, takeDue)), "go-1M-ms")
	b.ReportMetric(millis(scriptInGo(b, few, maintainOnly)), "go-maintain-ms")
	onePass(b)
}

func millis(d time.Duration) float64 { return float64(d) / 1e6 }

const (
	becomeDue = 2000
	zset      = "redisson_delay_queue_timeout:{bench}"
)

// scriptInGo pushes with a handle that is closed again, since nothing may move a message before the
// measurement.
func scriptInGo(b *testing.B, pending int, move mover, opts ...redisson.Option) time.Duration {
	b.Helper()
	server := ownRedis(b)
	q := oursOn(b, server, opts...)
	start, r := time.Now().Add(time.Hour), newRand()
	fill(b, q, pending, func() time.Time { return start.Add(time.Duration(r.Int64N(int64(time.Hour)))) })
	must(b, q.Close())
	return longestScript(b, server, pending, func() func() { return move(b, server, opts...) })
}

// scriptOnJavas measures Go on messages that Java has pushed.
func scriptOnJavas(b *testing.B, pending int) time.Duration {
	b.Helper()
	q := filledByJava(b, releases[len(releases)-1], pending)
	q.jvm.Kill()
	return longestScript(b, q.server, pending, func() func() { return takeDue(b, q.server) })
}

func scriptInJava(b *testing.B, release string, pending int) time.Duration {
	b.Helper()
	q := filledByJava(b, release, pending)
	must(b, q.Destroy(context.Background()))
	return longestScript(b, q.server, pending, func() func() {
		must(b, q.Hold(context.Background()))
		return func() { must(b, q.Destroy(context.Background())) }
	})
}

func filledByJava(b *testing.B, release string, pending int) rival {
	b.Helper()
	q := theirs(b, release)
	_, err := q.OfferMany(context.Background(), interop.Load{
		Count: pending, Size: bodySize, MinDelay: time.Hour, MaxDelay: 2 * time.Hour, Threads: 64, Prefix: "pending",
	})
	must(b, err)
	return q
}

// A mover opens the queue, moves due messages, and returns a function that stops it.
type mover func(b *testing.B, server *testenv.RedisServer, opts ...redisson.Option) (stop func())

func takeDue(b *testing.B, server *testenv.RedisServer, opts ...redisson.Option) (stop func()) {
	b.Helper()
	q := oursOn(b, server, opts...)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	nothing := func(context.Context, *delayq.Delivery) error { return nil }
	go func() { ended <- q.Consume(ctx, nothing, delayq.Workers(32)) }()
	return func() {
		cancel()
		must(b, <-ended)
		must(b, q.Close()) // an open handle would maintain the queue
	}
}

// maintainOnly pops from the destination list at its head, as Java does, or it would fill up.
func maintainOnly(b *testing.B, server *testenv.RedisServer, opts ...redisson.Option) (stop func()) {
	b.Helper()
	q := oursOn(b, server, opts...)
	client := server.Client(b)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			client.BLPop(ctx, time.Second, "bench")
		}
	}()
	return func() {
		cancel()
		<-ended
		must(b, q.Close())
	}
}

// longestScript makes the first messages due, whose places in the index list are random, and
// returns how long the longest script ran until they were all gone.
func longestScript(b *testing.B, server *testenv.RedisServer, pending int, move func() (stop func())) (least time.Duration) {
	b.Helper()
	ctx := context.Background()
	client := server.Client(b)
	must(b, client.ConfigSet(ctx, "slowlog-max-len", "100000").Err())
	must(b, client.ConfigSet(ctx, "slowlog-log-slower-than", "100").Err())
	for round := range 3 {
		makeDue(b, client)
		must(b, client.Do(ctx, "slowlog", "reset").Err())
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
		must(b, err)
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
	must(b, err)
	now := time.Now().UnixMilli()
	due := make([]redis.Z, len(first))
	for i, m := range first {
		due[i] = redis.Z{Score: float64(now), Member: m}
	}
	must(b, client.ZAddXX(ctx, zset, due...).Err())
}

func longestOf(b *testing.B, client *redis.Client) time.Duration {
	b.Helper()
	logged, err := client.SlowLogGet(context.Background(), -1).Result()
	must(b, err)
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
