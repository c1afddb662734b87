package bench

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
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
//	redis-us/msg            the time of all masters for a message, in scripts, from push to ack
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
			before := scriptTimes(b, client)
			due := time.Now()
			t := load.Burst(messages, due)
			load.PushBatches(b, q, t.Messages(), delayq.MaxBatch, 4)
			b.ReportMetric(float64(messages)/time.Since(due).Seconds(), "push-msgs/s")
			start := time.Now()
			consume(b, q, t)()
			b.ReportMetric(float64(messages)/time.Since(start).Seconds(), "drain-msgs/s")
			var sum, most float64
			for i, after := range scriptTimes(b, client) {
				sum, most = sum+after-before[i], max(most, after-before[i])
			}
			b.ReportMetric(sum/float64(messages), "redis-us/msg")
			b.ReportMetric(100*(3*most/sum-1), "spread-%")
			load.ReportQuantiles(b, "late-", lateQueue(b, q))
			load.OnePass(b)
		})
	}
}

// scriptTimes returns for how many microseconds each master has run scripts.
func scriptTimes(b *testing.B, client *redis.ClusterClient) []float64 {
	b.Helper()
	times := make(chan [2]string, 16)
	load.Must(b, client.ForEachMaster(b.Context(), func(ctx context.Context, master *redis.Client) error {
		info, err := master.Info(ctx, "commandstats").Result()
		_, stat, _ := strings.Cut(info, "cmdstat_evalsha:")
		_, stat, _ = strings.Cut(stat, "usec=")
		usec, _, _ := strings.Cut(stat, ",")
		times <- [2]string{master.Options().Addr, usec}
		return err
	}))
	close(times)
	var all [][2]string
	for t := range times {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	us := make([]float64, len(all))
	for i, t := range all {
		us[i], _ = strconv.ParseFloat(t[1], 64)
	}
	return us
}
