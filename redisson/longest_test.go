package redisson_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/redisson"
)

// BenchmarkLongest reports the microseconds of Redis that the longest scripts take: while an idle
// handle hands 2,000 messages of Java's over, due in one millisecond or each in its own, and while
// a worker takes and acks them. The figures are the server's own, so on a busy machine they include
// the time that others had the processor: "p99" tells more than "max" there.
func BenchmarkLongest(b *testing.B) {
	for _, size := range []int{100, 1 << 10, 10 << 10} {
		for _, ties := range []bool{true, false} {
			b.Run(fmt.Sprintf("%dB/ties=%t", size, ties), func(b *testing.B) {
				for b.Loop() {
					measureLongest(b, size, ties)
				}
				b.ReportMetric(0, "ns/op") // means nothing here
			})
		}
	}
}

const longestMessages = 2000

func measureLongest(b *testing.B, size int, ties bool) {
	b.Helper()
	ctx := context.Background()
	client := testenv.Redis(b, testenv.Directive("appendonly", "no"), testenv.Directive("slowlog-log-slower-than", "0"),
		testenv.Directive("slowlog-max-len", "100000")).Client(b)
	past := time.Now().Add(-time.Hour)
	pipe := client.Pipeline()
	for i := range longestMessages {
		due := past
		if !ties {
			due = due.Add(time.Duration(i*7919%longestMessages) * time.Millisecond)
		}
		m := javaMember(redisson.V2, fmt.Sprintf("%0*d", size, i))
		pipe.ZAdd(ctx, "redisson_delay_queue_timeout:{q}", redis.Z{Score: float64(due.UnixMilli()), Member: m})
		pipe.RPush(ctx, "redisson_delay_queue:{q}", m)
	}
	_, err := pipe.Exec(ctx)
	must(b, err)
	client.Do(ctx, "slowlog", "reset")
	back := redisson.New(client)
	defer func() { _ = back.Close() }()
	q := redistest.Open(b, back, "q")
	await(b, "the hand-over", func() bool { return client.LLen(ctx, "q").Val() >= 500 })
	reportLongest(b, client, "hand")
	for n := 0; n < longestMessages; {
		ds, err := q.Receive(ctx, 500, time.Minute)
		must(b, err)
		must(b, q.Ack(ctx, leases(ds))...)
		n += len(ds)
	}
	reportLongest(b, client, "take")
}

// reportLongest reports the time of the longest scripts since the last report.
func reportLongest(b *testing.B, client *redis.Client, phase string) {
	b.Helper()
	ctx := context.Background()
	log, err := client.SlowLogGet(ctx, -1).Result()
	must(b, err)
	byScript := make(map[string][]time.Duration)
	for _, entry := range log {
		if strings.HasPrefix(strings.ToLower(entry.Args[0]), "evalsha") {
			byScript[entry.Args[1]] = append(byScript[entry.Args[1]], entry.Duration)
		}
	}
	for sha, times := range byScript {
		slices.Sort(times)
		us := func(d time.Duration) string { return strconv.FormatInt(d.Microseconds(), 10) }
		fmt.Fprintln(os.Stderr, b.Name(), phase, sha[:6], "n", len(times), "max", us(times[len(times)-1]), "p99", us(times[len(times)*99/100]), "p50", us(times[len(times)/2]))
	}
	client.Do(ctx, "slowlog", "reset")
}
