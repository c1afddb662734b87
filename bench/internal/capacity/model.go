package capacity

import (
	"fmt"
	"math"

	"github.com/delayq/delayq/bench/internal/raw"
)

// A model has the costs of a server of one backend.
type model struct {
	name, means string
	bytes       float64 // a pending message, 0 where that was not measured
	// seconds of the server for a message, when so many wait there
	cost     func(pending float64) float64
	parts    float64 // that the messages lie in, which a server has whole; 0 for as many as one likes
	cores    int     // of a server
	replicas int     // of a server, or -1 for those that the load asks for
	checks   []point
}

// share is the part of the messages that the busiest of so many servers has.
func (m model) share(servers float64) float64 {
	if m.parts == 0 {
		return 1 / servers
	}
	return math.Ceil(m.parts/servers) / m.parts
}

// A point was measured, and the model was not fitted to it.
type point struct {
	what            string
	model, measured float64
}

// fit makes the models for which f has enough.
func fit(f *raw.File) (models []model) {
	for _, store := range []string{"zsetpoll-script", "keyspace", "redisson"} {
		if m, ok := redisModel(f, store); ok {
			models = append(models, m)
			if m, ok := shardedModel(f, m); ok && store == "zsetpoll-script" {
				models = append(models, m)
			}
		}
	}
	if m, ok := memoryModel(f); ok {
		models = append(models, m)
	}
	if m, ok := rabbitModel(f); ok {
		models = append(models, m)
	}
	return models
}

// lookup collects metrics until one is missing.
type lookup struct {
	file    *raw.File
	missing bool
}

func (l *lookup) at(benchmark, unit string) float64 {
	v, ok := l.file.Metric(benchmark, unit)
	l.missing = l.missing || !ok
	return v
}

// logarithmic is the curve through the costs at two depths: operations of heaps and skip lists cost
// as much as the logarithm of their size. It does not fall: where the greater depth was cheaper,
// that is chance, and the mean holds for all depths.
func logarithmic(depth1, cost1, depth2, cost2 float64) func(float64) float64 {
	if cost2 < cost1 {
		return func(float64) float64 { return (cost1 + cost2) / 2 }
	}
	slope := (cost2 - cost1) / math.Log(depth2/depth1)
	return func(pending float64) float64 {
		return math.Max(cost1, cost1+slope*math.Log(math.Max(pending, 1)/depth1))
	}
}

func redisModel(f *raw.File, store string) (model, bool) {
	l := &lookup{file: f}
	line := func(pending int) string { return fmt.Sprintf("BenchmarkPending/backend=%s/pending=%d", store, pending) }
	cost := func(pending int) float64 {
		return (l.at(line(pending), "push-us/op") + l.at(line(pending), "take-us/op")) / 1e6
	}
	m := model{
		name: store, cores: 1, replicas: -1,
		means: "a server is a Redis with one core, and has replicas. Bytes by 100,000 pending, cost by 1,000 and 100,000.",
		bytes: l.at(line(100_000), "B/pending"),
		cost:  logarithmic(1e3, cost(1_000), 1e5, cost(100_000)),
	}
	m.checks = []point{
		{"bytes of a message among 1,000,000", m.bytes, l.at(line(1_000_000), "B/pending")},
		{"µs of the server for a message among 1,000,000", 1e6 * m.cost(1e6), 1e6 * cost(1_000_000)},
		{"µs of the server for a message among 10,000", 1e6 * m.cost(1e4), 1e6 * cost(10_000)},
	}
	return m, !l.missing
}

// shardedModel is for one queue whose shards lie on all servers, from the costs without shards.
func shardedModel(f *raw.File, whole model) (model, bool) {
	l := &lookup{file: f}
	dearer := func(shards int) float64 {
		const unit = "redis-us/msg"
		return l.at(fmt.Sprintf("BenchmarkShards/shards=%d", shards), unit) / l.at("BenchmarkShards/shards=1", unit)
	}
	m := whole
	m.name, m.parts = "zsetpoll, one queue", 256
	m.means = fmt.Sprintf("as zsetpoll-script, for one queue of 256 shards. A message costs %.2f times as much as without, measured with 64 shards on three servers.", dearer(64))
	m.cost = func(pending float64) float64 { return dearer(64) * whole.cost(pending) }
	m.checks = []point{{"times the cost without shards, of 16", dearer(64), dearer(16)}}
	return m, !l.missing
}

func memoryModel(f *raw.File) (model, bool) {
	const body = 100
	l := &lookup{file: f}
	const depth, footprint = "BenchmarkDepth/backend=memory/due=now", "BenchmarkFootprint/backend=memory/pending="
	m := model{
		name: "memory", cores: 1,
		means: "a server is a process, which forgets all when it ends. Bytes by 1,000,000 pending, cost by 1,000 and 100,000.",
		bytes: body + l.at(footprint+"1000000", "overhead-B/msg"),
		cost:  logarithmic(1e3, l.at(depth, "ns/msg-at-1k")/1e9, 1e5, l.at(depth, "ns/msg-at-100k")/1e9),
	}
	m.checks = []point{
		{"bytes of a message among 10,000,000", m.bytes, body + l.at(footprint+"10000000", "overhead-B/msg")},
		{"µs of a message among 1,000,000", 1e6 * m.cost(1e6), l.at(depth, "ns/msg-at-1M") / 1e3},
	}
	return m, !l.missing
}

// rabbitModel takes the rates of a whole machine.
func rabbitModel(f *raw.File) (model, bool) {
	l := &lookup{file: f}
	push, drain := l.at("BenchmarkRabbitPush", "go-msgs/s"), l.at("BenchmarkRabbitDrain", "go-msgs/s")
	m := model{
		name: "rabbitmq", cores: max(1, f.Machine.Cores), replicas: 2,
		means: "a server is a broker on a machine like the measured one, with two more that keep quorum; measured was one alone, which " +
			"shared its processors with the clients. Bytes of memory by 10,000 pending, before they are on disk alone.",
		bytes: l.at("BenchmarkPending/backend=rabbitmq/pending=10000", "B/pending"),
		cost:  func(float64) float64 { return 1/push + 1/drain },
	}
	m.checks = []point{
		{"bytes of a message among 20,000", m.bytes, l.at("BenchmarkPending/backend=rabbitmq/pending=20000", "B/pending")},
		{"pushes a second from 256 goroutines, in BenchmarkPush", push, l.at("BenchmarkPush/backend=rabbitmq/parallel=256", "msgs/s")},
		{"drained a second, in BenchmarkBurst", drain, l.at("BenchmarkBurst/backend=rabbitmq", "msgs/s")},
	}
	return m, !l.missing
}
