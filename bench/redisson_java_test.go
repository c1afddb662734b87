package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/internal/testenv"
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

// rival is Redisson at work on a server of its own.
type rival struct {
	*interop.Queue
	jvm    *interop.JVM
	server *testenv.RedisServer
}

func theirs(b *testing.B, release string) rival {
	b.Helper()
	server := ownRedis(b)
	jvm := interop.Start(b, release, server.Addr())
	return rival{jvm.Queue("bench", interop.WithCodec(interop.String)), jvm, server}
}

// ours opens the queue on a server of its own.
func ours(b *testing.B) delayq.Queue {
	b.Helper()
	return oursOn(b, ownRedis(b))
}

func oursOn(b *testing.B, server *testenv.RedisServer, opts ...redisson.Option) delayq.Queue {
	b.Helper()
	store := redisson.New(server.Client(b), append(opts, redisson.WithCodec(redisson.Bytes))...)
	b.Cleanup(func() { must(b, store.Close()) })
	return open(b, store, "bench")
}

// onePass says that b.N means nothing, and that the metrics tell all.
func onePass(b *testing.B) { b.ReportMetric(0, "ns/op") }

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
	messages := unlessShort(100_000, 2000)
	workers := burstInGo(b, messages, consume)
	batches := burstInGo(b, messages, consumeBatches)
	java := burstInJava(b, release, messages)
	b.ReportMetric(workers.Seconds(), "go-s")
	b.ReportMetric(batches.Seconds(), "go-batch-s")
	b.ReportMetric(java.Seconds(), "java-s")
	b.ReportMetric(java.Seconds()/workers.Seconds(), "java/go")
	b.ReportMetric(java.Seconds()/batches.Seconds(), "java/go-batch")
	onePass(b)
}

// burstInGo repeats a burst whose pushes took too long.
func burstInGo(b *testing.B, messages int, consume func(*testing.B, delayq.Queue, *tally) func()) time.Duration {
	b.Helper()
	for lead := window(4 * time.Second); ; lead *= 2 {
		q := ours(b)
		due := time.Now().Add(lead)
		t := newTally(slices.Repeat([]time.Time{due}, messages))
		pushAll(b, q, t)
		inTime := time.Now().Before(due)
		wait := consume(b, q, t)
		wait()
		if inTime {
			return slices.Max(t.late)
		}
	}
}

// consumeBatches is consume by ReceiveBatch and AckBatch.
func consumeBatches(b *testing.B, q delayq.Queue, t *tally) (wait func()) {
	const goroutines = 4
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, goroutines)
	for range goroutines {
		go func() { ended <- batchesInto(ctx, q, t) }()
	}
	return func() {
		b.Helper()
		t.wait(b)
		stop()
		for range goroutines {
			must(b, <-ended)
		}
		t.mustHold(b)
		mustHold(b, q, 0)
	}
}

// batchesInto returns nil when ctx has ended.
func batchesInto(ctx context.Context, q delayq.Queue, t *tally) error {
	for {
		ds, err := q.ReceiveBatch(ctx, 100)
		if errors.Is(err, context.Canceled) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, d := range ds {
			t.arrived(number(d.Body))
		}
		if err := q.AckBatch(context.WithoutCancel(ctx), ds); err != nil {
			return err
		}
	}
}

// javaPatience bounds waits for Java.
const javaPatience = 150 * time.Second

// burstInJava counts messages that are missing after javaPatience as if they came then.
func burstInJava(b *testing.B, release string, messages int) time.Duration {
	b.Helper()
	ctx := context.Background()
	for lead := window(20 * time.Second); ; lead *= 2 {
		q := theirs(b, release)
		due := time.Now().Add(lead)
		_, err := q.OfferMany(ctx, interop.Load{Count: messages, Size: bodySize, Due: due, Threads: 64, Prefix: "burst"})
		must(b, err)
		if time.Now().After(due) {
			continue
		}
		consumer, err := q.Consume(ctx, 32)
		must(b, err)
		late := latenessIn(b, consumer, messages, func(string) time.Time { return due })
		q.jvm.Kill() // it may be far from done
		return slices.Max(late)
	}
}

// latenessIn waits for messages in Java.
func latenessIn(b *testing.B, c *interop.Consumer, n int, due func(text string) time.Time) (late []time.Duration) {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), javaPatience)
	defer cancel()
	for len(late) < n {
		r, err := c.Next(ctx)
		if ctx.Err() != nil {
			b.Logf("%d messages of %d came to Java within %v", len(late), n, javaPatience)
			return append(late, javaPatience)
		}
		must(b, err)
		must(b, r.Err)
		text, _ := r.Value.(string)
		late = append(late, r.At.Sub(due(text)))
	}
	return late
}

// stamp reads when a stamped value is due.
func stamp(text string) time.Time {
	_, ms, _ := strings.Cut(strings.TrimRight(text, "."), "@")
	n, _ := strconv.ParseInt(ms, 10, 64) // zero makes the lateness absurd
	return time.UnixMilli(n)
}

// BenchmarkRedissonLateness measures lateness under the load of BenchmarkLateness: 2,000 messages a
// second, delays of 1 to 3 s, 32 workers. It counts from the due time that a push asked for, by the
// clock that decides, whenever its turn came: eight goroutines or threads push, so that a busy
// machine keeps the pace. Java cuts that due time to milliseconds. Goal for go-late-p99-ms: 3.
func BenchmarkRedissonLateness(b *testing.B) {
	bare, here := newHistogram(), newHistogram()
	java := make(map[string]*hdrhistogram.Histogram)
	for range unlessShort(2, 1) {
		record(bare, lateBare(b))
		q := ours(b)
		record(here, lateInGo(b, q))
		for _, release := range releases {
			if java[release] == nil {
				java[release] = newHistogram()
			}
			record(java[release], lateInJava(b, release))
		}
	}
	reportLateness(b, "bare-", bare)
	reportLateness(b, "go-", here)
	for release, h := range java {
		reportLateness(b, release+"-", h)
		b.ReportMetric(float64(h.ValueAtQuantile(99))/float64(here.ValueAtQuantile(99)), release+"/go-p99")
	}
	onePass(b)
}

const latePushers = 8

func lateInGo(b *testing.B, q delayq.Queue) []time.Duration {
	b.Helper()
	ctx, stop := context.WithCancel(context.Background())
	start := time.Now()
	load := plan(start)
	late := make(chan time.Duration, len(load.due))
	ended := make(chan error, 1)
	go func() {
		ended <- q.Consume(ctx, func(_ context.Context, d *delayq.Delivery) error {
			late <- time.Now().Round(0).Sub(d.Due)
			return nil
		}, delayq.Workers(32))
	}()
	for from := range latePushers {
		go func() {
			for i := from; i < len(load.due); i += latePushers {
				turn := start.Add(time.Duration(i) * lateInterval)
				time.Sleep(time.Until(turn))
				if _, err := q.Push(ctx, body, delayq.After(load.due[i].Sub(turn))); err != nil {
					b.Error(err)
				}
			}
		}()
	}
	all := make([]time.Duration, len(load.due))
	for i := range all {
		select {
		case all[i] = <-late:
		case <-time.After(time.Minute):
			b.Fatalf("%d messages of %d came", i, len(all))
		}
	}
	stop()
	must(b, <-ended)
	return all
}

func lateInJava(b *testing.B, release string) []time.Duration {
	b.Helper()
	ctx := context.Background()
	least := unlessShort(time.Second, time.Second/10)
	n := len(plan(time.Now()).due)
	q := theirs(b, release)
	consumer, err := q.Consume(ctx, 32)
	must(b, err)
	_, err = q.OfferMany(ctx, interop.Load{
		Count: n, Size: bodySize, MinDelay: least, MaxDelay: 3 * least, Threads: latePushers,
		Rate: int(time.Second / lateInterval), Prefix: "late", Stamped: true,
	})
	must(b, err)
	return latenessIn(b, consumer, n, stamp)
}

// BenchmarkRedissonLone measures the lateness of lone messages: each is pushed when the one before
// has arrived, with a delay of 300 to 1,200 ms. Goal for go-late-p50-ms: 1.5.
func BenchmarkRedissonLone(b *testing.B) {
	n := unlessShort(50, 3)
	delays := make([]time.Duration, n)
	for i, r := 0, newRand(); i < n; i++ {
		delays[i] = 300*time.Millisecond + time.Duration(r.Int64N(int64(900*time.Millisecond)))
	}
	here := newHistogram()
	record(here, loneInGo(b, delays))
	reportLateness(b, "go-", here)
	for _, release := range releases {
		java := newHistogram()
		record(java, loneInJava(b, release, delays))
		reportLateness(b, release+"-", java)
		b.ReportMetric(float64(java.ValueAtQuantile(50))/float64(here.ValueAtQuantile(50)), release+"/go-p50")
	}
	onePass(b)
}

func loneInGo(b *testing.B, delays []time.Duration) (late []time.Duration) {
	b.Helper()
	q := ours(b)
	arrived := make(chan time.Duration, 1)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- q.Consume(ctx, func(_ context.Context, d *delayq.Delivery) error {
			arrived <- time.Now().Round(0).Sub(d.Due)
			return nil
		}, delayq.Workers(32))
	}()
	for _, delay := range delays {
		_, err := q.Push(ctx, body, delayq.After(delay))
		must(b, err)
		late = append(late, <-arrived)
	}
	stop()
	must(b, <-ended)
	return late
}

func loneInJava(b *testing.B, release string, delays []time.Duration) (late []time.Duration) {
	b.Helper()
	ctx := context.Background()
	q := theirs(b, release)
	consumer, err := q.Consume(ctx, 32)
	must(b, err)
	for i, delay := range delays {
		_, err := q.OfferMany(ctx, interop.Load{Count: 1, Size: bodySize, MinDelay: delay, MaxDelay: delay, Prefix: fmt.Sprint("lone", i), Stamped: true})
		must(b, err)
		late = append(late, latenessIn(b, consumer, 1, stamp)...)
	}
	return late
}

// BenchmarkRedissonPush measures pushes from 64 callers in messages a second: goroutines here,
// threads in Java. Goal: four times Redisson's.
func BenchmarkRedissonPush(b *testing.B) {
	n := unlessShort(50_000, 2000)
	q := ours(b)
	pushesOf(b, q, n/10)
	here := pushesOf(b, q, n)
	b.ReportMetric(here, "go-msgs/s")
	for _, release := range releases {
		q := theirs(b, release)
		offersOf(b, q, n/10)
		java := offersOf(b, q, n)
		b.ReportMetric(java, release+"-msgs/s")
		b.ReportMetric(here/java, "go/"+release)
	}
	onePass(b)
}

func pushesOf(b *testing.B, q delayq.Queue, n int) (rate float64) {
	b.Helper()
	const goroutines = 64
	var all sync.WaitGroup
	start := time.Now()
	for from := range goroutines {
		all.Go(func() {
			for i := from; i < n && !b.Failed(); i += goroutines {
				pushOne(b, q)
			}
		})
	}
	all.Wait()
	return float64(n) / time.Since(start).Seconds()
}

func offersOf(b *testing.B, q rival, n int) (rate float64) {
	b.Helper()
	took, err := q.OfferMany(context.Background(), interop.Load{Count: n, Size: bodySize, MinDelay: time.Hour, MaxDelay: time.Hour, Threads: 64, Prefix: "push"})
	must(b, err)
	return float64(n) / took.Seconds()
}
