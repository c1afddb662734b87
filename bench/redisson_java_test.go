package bench

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
	interop "github.com/delayq/delayq/interop/redisson"
	"github.com/delayq/delayq/redisson"
)

// The benchmarks of this file put real Redisson beside the backend of its name: the same load, one
// after the other, each on a server of its own with its usual settings for benchmarks. Redisson is
// one client in a JVM. Without Java they are skipped.
//
//	go test -run '^$' -bench Redisson -benchtime 1x -timeout 30m ./bench
//
// Metrics begin with the side, go or a release of Redisson; go/3.52.0 is the figure of go in shares
// of that of the release, or 3.52.0/go the other way round, so that more is better for go.

// releases of Redisson to compare with: the last 3.x and the newest.
var releases = []string{"3.52.0", "4.7.0"}

// ours opens the queue on a server of its own.
func ours(b *testing.B) delayq.Queue {
	b.Helper()
	return oursOn(b, load.OwnRedis(b))
}

func oursOn(b *testing.B, server load.Redis, opts ...redisson.Option) delayq.Queue {
	b.Helper()
	store := redisson.New(server.Client(b), append(opts, redisson.WithCodec(redisson.Bytes))...)
	b.Cleanup(func() { load.Must(b, store.Close()) })
	return open(b, store, "bench")
}

// BenchmarkRedissonBurst measures messages due at one instant: seconds from then until the last of
// 100,000 is received, by 32 takers in Java (java-s), by 32 workers of Consume (go-s), and in
// batches of 100 that four goroutines acknowledge at once (go-batch-s). Goal for java/go: 50. The
// benchmark waits at most 150 s for Java.
func BenchmarkRedissonBurst(b *testing.B) {
	for _, release := range releases {
		b.Run("release="+release, func(b *testing.B) { redissonBurst(b, release) })
	}
}

func redissonBurst(b *testing.B, release string) {
	messages := load.UnlessShort(100_000, 2000)
	workers := burstInGo(b, messages, consume)
	batches := burstInGo(b, messages, consumeBatches)
	java := burstInJava(b, release, messages)
	b.ReportMetric(workers.Seconds(), "go-s")
	b.ReportMetric(batches.Seconds(), "go-batch-s")
	b.ReportMetric(java.Seconds(), "java-s")
	b.ReportMetric(java.Seconds()/workers.Seconds(), "java/go")
	b.ReportMetric(java.Seconds()/batches.Seconds(), "java/go-batch")
	load.OnePass(b)
}

// burstInGo repeats a burst whose pushes took too long.
func burstInGo(b *testing.B, messages int, consume consumer) time.Duration {
	b.Helper()
	for lead := window(4 * time.Second); ; lead *= 2 {
		q := ours(b)
		due := time.Now().Add(lead)
		t := load.Burst(messages, due)
		load.PushBatches(b, q, t.Messages(), delayq.MaxBatch, 1)
		inTime := time.Now().Before(due)
		consume(b, q, t)()
		if inTime {
			return slices.Max(t.Outcome().Late)
		}
	}
}

// javaPatience bounds waits for Java.
const javaPatience = 150 * time.Second

// burstInJava counts messages that are missing after javaPatience as if they came then.
func burstInJava(b *testing.B, release string, messages int) time.Duration {
	b.Helper()
	for lead := window(20 * time.Second); ; lead *= 2 {
		q := load.OpenJava(b, release)
		due := time.Now().Add(lead)
		q.Offer(b, interop.Load{Count: messages, Due: due, Threads: 64, Prefix: "burst"})
		if time.Now().After(due) {
			continue
		}
		consumer, _ := q.Workers(b)
		late := latenessIn(b, consumer, messages, func(string) (time.Time, bool) { return due, true })
		q.JVM.Kill() // it may be far from done
		return slices.Max(late)
	}
}

// latenessIn waits for messages in Java.
func latenessIn(b *testing.B, c *interop.Consumer, n int, due func(text string) (time.Time, bool)) []time.Duration {
	b.Helper()
	late := load.LateInJava(b, c, n, time.Now().Add(javaPatience), due)
	if len(late) < n {
		b.Logf("%d messages of %d came to Java within %v", len(late), n, javaPatience)
		late = append(late, javaPatience)
	}
	return late
}

// BenchmarkRedissonLateness measures lateness under the load of BenchmarkLateness: 2,000 messages a
// second, delays of 1 to 3 s, 32 workers. It counts from the due time that a push asked for, by the
// clock that decides, whenever its turn came: eight goroutines or threads push, so that a busy
// machine keeps the pace. Java cuts that due time to milliseconds. Goal for go-late-p99-ms: 3.
func BenchmarkRedissonLateness(b *testing.B) {
	late := make(map[string][]time.Duration)
	for range load.UnlessShort(2, 1) {
		late["bare"] = append(late["bare"], lateBare(b)...)
		late["go"] = append(late["go"], lateInGo(b, ours(b))...)
		for _, release := range releases {
			late[release] = append(late[release], lateInJava(b, release)...)
		}
	}
	for side := range late {
		load.ReportQuantiles(b, side+"-late-", late[side])
	}
	reportRatios(b, late, 0.99, "/go-p99")
	load.OnePass(b)
}

// reportRatios reports how many times as late as Go the releases are.
func reportRatios(b *testing.B, late map[string][]time.Duration, share float64, unit string) {
	for _, release := range releases {
		b.ReportMetric(float64(load.Quantile(late[release], share))/float64(load.Quantile(late["go"], share)), release+unit)
	}
}

const latePushers = 8

// lateOf has workers report how late messages come, by the due time that the store says.
func lateOf(b *testing.B, q delayq.Queue) (next func() time.Duration, stop func()) {
	late := make(chan time.Duration, 10_000)
	stop = load.Consume(b, func(d *delayq.Delivery) { late <- time.Now().Round(0).Sub(d.Due) }, q)
	return func() (l time.Duration) {
		b.Helper()
		select {
		case l = <-late:
		case <-time.After(time.Minute):
			b.Fatal("a message is lost")
		}
		return l
	}, stop
}

func lateInGo(b *testing.B, q delayq.Queue) []time.Duration {
	b.Helper()
	next, stop := lateOf(b, q)
	start := time.Now()
	plan := load.Plan(start)
	load.Pace(b, start, len(plan.Due), latePushers, func(i int) error {
		turn := start.Add(time.Duration(i) * load.Interval)
		_, err := q.Push(context.Background(), load.Body, delayq.After(plan.Due[i].Sub(turn)))
		return err
	})
	all := make([]time.Duration, len(plan.Due))
	for i := range all {
		all[i] = next()
	}
	stop()
	return all
}

func lateInJava(b *testing.B, release string) []time.Duration {
	b.Helper()
	q := load.OpenJava(b, release)
	consumer, _ := q.Workers(b)
	return latenessIn(b, consumer, q.OfferPlan(b, latePushers), load.Stamp)
}

// BenchmarkRedissonLone measures the lateness of lone messages: each is pushed when the one before
// has arrived, with a delay of 300 to 1,200 ms. Goal for go-late-p50-ms: 1.5.
func BenchmarkRedissonLone(b *testing.B) {
	n := load.UnlessShort(50, 3)
	delays := make([]time.Duration, n)
	for i, r := 0, newRand(); i < n; i++ {
		delays[i] = 300*time.Millisecond + time.Duration(r.Int64N(int64(900*time.Millisecond)))
	}
	late := map[string][]time.Duration{"go": loneInGo(b, delays)}
	for _, release := range releases {
		late[release] = loneInJava(b, release, delays)
	}
	for side := range late {
		load.ReportQuantiles(b, side+"-late-", late[side])
	}
	reportRatios(b, late, 0.5, "/go-p50")
	load.OnePass(b)
}

func loneInGo(b *testing.B, delays []time.Duration) (late []time.Duration) {
	b.Helper()
	q := ours(b)
	next, stop := lateOf(b, q)
	for _, delay := range delays {
		_, err := q.Push(context.Background(), load.Body, delayq.After(delay))
		load.Must(b, err)
		late = append(late, next())
	}
	stop()
	return late
}

func loneInJava(b *testing.B, release string, delays []time.Duration) (late []time.Duration) {
	b.Helper()
	q := load.OpenJava(b, release)
	consumer, _ := q.Workers(b)
	for i, delay := range delays {
		q.Offer(b, interop.Load{Count: 1, MinDelay: delay, MaxDelay: delay, Prefix: fmt.Sprint("lone", i), Stamped: true})
		late = append(late, latenessIn(b, consumer, 1, load.Stamp)...)
	}
	return late
}

// BenchmarkRedissonPush measures pushes from 64 callers in messages a second: goroutines here,
// threads in Java. Goal: four times Redisson's.
func BenchmarkRedissonPush(b *testing.B) {
	n := load.UnlessShort(50_000, 2000)
	q := ours(b)
	load.Push(b, q, n/10, 64)
	start := time.Now()
	load.Push(b, q, n, 64)
	here := float64(n) / time.Since(start).Seconds()
	b.ReportMetric(here, "go-msgs/s")
	for _, release := range releases {
		offers := interop.Load{Count: n, MinDelay: time.Hour, MaxDelay: time.Hour, Threads: 64, Prefix: "push"}
		few := offers
		few.Count = n / 10
		q := load.OpenJava(b, release)
		q.Offer(b, few)
		java := float64(n) / q.Offer(b, offers).Seconds()
		b.ReportMetric(java, release+"-msgs/s")
		b.ReportMetric(here/java, "go/"+release)
	}
	load.OnePass(b)
}
