package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/zsetpoll"
)

// BenchmarkShards measures one queue on a Cluster of three masters, without shards and with 16 and 64: a
// million messages that are due at once, and then the load of BenchmarkLateness.
//
//	push-msgs/s drain-msgs/s
//	redis-us/msg            the processor time of all masters for a message, from push to ack
//	spread-%                the busiest master's time beyond the mean of all
//	late-p50-ms late-p99-ms late-max-ms
//
// The masters share this machine's processors with the workers, so that more of them make it no faster.
// redis-us/msg tells how far one master goes: with enough processors its share of the time is the limit.
func BenchmarkShards(b *testing.B) {
	for _, n := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("shards=%d", n), func(b *testing.B) {
			cluster := testenv.RedisCluster(b)
			client := cluster.Client(b)
			store := zsetpoll.New(client, zsetpoll.Shards(n))
			b.Cleanup(func() { load.Must(b, store.Close()) })
			q := open(b, store, "shards")
			messages := load.UnlessShort(1_000_000, 10_000)
			before := processorTimes(b, client)
			due := time.Now()
			t := load.Burst(messages, due)
			load.PushBatches(b, q, t.Messages(), delayq.MaxBatch, 4)
			b.ReportMetric(float64(messages)/time.Since(due).Seconds(), "push-msgs/s")
			start := time.Now()
			consume(b, q, t)()
			b.ReportMetric(float64(messages)/time.Since(start).Seconds(), "drain-msgs/s")
			var sum, most float64
			for i, after := range processorTimes(b, client) {
				sum, most = sum+after-before[i], max(most, after-before[i])
			}
			b.ReportMetric(sum/float64(messages), "redis-us/msg")
			b.ReportMetric(100*(3*most/sum-1), "spread-%")
			load.ReportQuantiles(b, "late-", lateQueue(b, q))
			load.OnePass(b)
		})
	}
}

// processorTimes returns for how many microseconds each master has run.
func processorTimes(b *testing.B, client *redis.ClusterClient) []float64 {
	b.Helper()
	var mu sync.Mutex
	times := make(map[string]float64)
	load.Must(b, client.ForEachMaster(b.Context(), func(ctx context.Context, master *redis.Client) error {
		info, err := master.Info(ctx, "cpu").Result()
		mu.Lock()
		defer mu.Unlock()
		for line := range strings.Lines(info) {
			if name, value, _ := strings.Cut(strings.TrimSpace(line), ":"); name == "used_cpu_user" || name == "used_cpu_sys" {
				seconds, err := strconv.ParseFloat(value, 64)
				load.Must(b, err)
				times[master.Options().Addr] += 1e6 * seconds
			}
		}
		return err
	}))
	var us []float64
	for _, addr := range slices.Sorted(maps.Keys(times)) {
		us = append(us, times[addr])
	}
	return us
}
