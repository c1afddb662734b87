package store_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/redis/store"
	"github.com/delayq/delayq/internal/testenv"
)

// BenchmarkServer measures the microseconds that the server spends in scripts for one message of
// 100 bytes: a push, a claim and an ack, in calls of each size.
func BenchmarkServer(b *testing.B) {
	client := testenv.Redis(b, testenv.Directive("appendonly", "no")).Client(b)
	for _, trigger := range []bool{false, true} {
		for _, size := range []int{1, 10, 100} {
			b.Run(fmt.Sprintf("trigger=%t/calls=%d", trigger, size), func(b *testing.B) { serverTime(b, client, size, trigger) })
		}
	}
}

func serverTime(b *testing.B, client *redis.Client, size int, triggered bool) {
	const pending = 20_000
	ctx := context.Background()
	c := store.Config{Client: client, Triggered: triggered, Prefix: "bench"}
	s := store.New(c, strings.ReplaceAll(b.Name(), "/", " "), nil)
	var push, drain time.Duration
	for b.Loop() {
		due := time.Now().Add(4 * time.Second)
		ms := make([]backend.Message, pending)
		for i := range ms {
			ms[i] = backend.Message{ID: fmt.Sprintf("message %08d", i), Body: make([]byte, 100), Due: due}
		}
		push += serverSpends(b, client, func() {
			for batch := range slices.Chunk(ms, size) {
				must(b, s.Schedule(ctx, batch)...)
			}
		})
		time.Sleep(time.Until(due))
		drain += serverSpends(b, client, func() {
			for n := 0; n < pending; {
				c, err := s.Claim(ctx, size, time.Minute, "claim of a worker "+redistest.Name())
				must(b, err)
				must(b, s.Ack(ctx, redistest.Leases(c.Deliveries))...)
				n += len(c.Deliveries)
			}
		})
	}
	b.ReportMetric(float64(push.Microseconds())/float64(b.N)/pending, "push-us/msg")
	b.ReportMetric(float64(drain.Microseconds())/float64(b.N)/pending, "drain-us/msg")
	b.ReportMetric(0, "ns/op") // means nothing here
}

// serverSpends is how long the server is in scripts meanwhile.
func serverSpends(b *testing.B, client *redis.Client, do func()) time.Duration {
	before := scriptTime(b, client)
	do()
	return scriptTime(b, client) - before
}

func scriptTime(b *testing.B, client *redis.Client) time.Duration {
	info, err := client.Info(context.Background(), "commandstats").Result()
	must(b, err)
	_, stat, _ := strings.Cut(info, "cmdstat_evalsha:")
	_, stat, _ = strings.Cut(stat, "usec=")
	digits, _, _ := strings.Cut(stat, ",")
	us, _ := strconv.ParseInt(digits, 10, 64)
	return time.Duration(us) * time.Microsecond
}
