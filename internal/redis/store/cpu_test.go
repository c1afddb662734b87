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
		push += serverSpends(b, client, func() {
			for batch := range slices.Chunk(benchMessages(pending, due), size) {
				must(b, s.Schedule(ctx, batch)...)
			}
		})
		time.Sleep(time.Until(due))
		drain += serverSpends(b, client, func() { drainAll(b, s, pending, size) })
	}
	b.ReportMetric(float64(push.Microseconds())/float64(b.N)/pending, "push-us/msg")
	b.ReportMetric(float64(drain.Microseconds())/float64(b.N)/pending, "drain-us/msg")
	b.ReportMetric(0, "ns/op") // means nothing here
}

func benchMessages(n int, due time.Time) []backend.Message {
	ms := make([]backend.Message, n)
	for i := range ms {
		ms[i] = backend.Message{ID: fmt.Sprintf("message %08d", i), Body: make([]byte, 100), Due: due}
	}
	return ms
}

// drainAll claims and acks.
func drainAll(b *testing.B, s *store.Store, n, size int) {
	ctx := context.Background()
	for i := 0; n > 0; i++ {
		c, err := s.Claim(ctx, size, time.Minute, fmt.Sprintf("claim %020d", i))
		must(b, err)
		must(b, s.Ack(ctx, redistest.Leases(c.Deliveries))...)
		n -= len(c.Deliveries)
	}
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
