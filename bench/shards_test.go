package bench

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
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

// BenchmarkReshard pushes 2,000 messages a second, with delays of 1 to 60 s, to a queue without shards on a
// Cluster of three masters, for two minutes. After a quarter of them it gets 16 shards, and after half of
// them one again. None may come early, twice or not at all.
//
//	late-p50-ms late-p99-ms late-max-ms
func BenchmarkReshard(b *testing.B) {
	store := zsetpoll.New(testenv.RedisCluster(b).Client(b))
	b.Cleanup(func() { load.Must(b, store.Close()) })
	q := open(b, store, "reshard")
	n, least, most := load.UnlessShort(240_000, 2000), load.LeastDelay(), load.UnlessShort(time.Minute, time.Second)
	start := time.Now()
	r := rand.New(rand.NewPCG(1, 2))
	due := make([]time.Time, n)
	for i := range due {
		due[i] = start.Add(time.Duration(i)*load.Interval + least + time.Duration(r.Int64N(int64(most-least))))
	}
	t := load.NewTally(due)
	wait := consume(b, q, t)
	load.Pace(b, start, n, load.Pushers, func(i int) error {
		switch i {
		case n / 4:
			load.Must(b, store.Reshard(b.Context(), "reshard", 16))
		case n / 2:
			load.Must(b, store.Reshard(b.Context(), "reshard", 1))
		}
		m := t.Message(i)
		_, err := q.Push(context.Background(), m.Body, delayq.At(m.Due))
		return err
	})
	wait()
	t.Outcome().MustHold(b, "resharded")
	load.ReportQuantiles(b, "late-", t.Outcome().Late)
	load.OnePass(b)
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
