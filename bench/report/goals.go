package main

import (
	"strconv"
	"strings"
)

// These name lines of bench/peers.
const (
	drainPeers  = "BenchmarkDrainPeers/"
	singlePeers = "BenchmarkPushPeers/single/"
	batchPeers  = "BenchmarkPushPeers/batch/"
	atOncePeers = "BenchmarkPushPeers/batches/"
	latePeers   = "BenchmarkLatenessPeers/"
	depthPeers  = "BenchmarkDepthPeers/"
	cancelPeers = "BenchmarkCancelPeers/"
	idlePeers   = "BenchmarkIdlePeers/"
)

// goals are delayq's goals for its benchmarks.
var goals = []goal{
	{
		what: "early deliveries, on every backend", limit: atMost(number(0)), value: greatest(
			early("memory"), early("zsetpoll-script"), early("keyspace"), early("redisson"), early("rabbitmq"),
			early("sqlite"), early("postgres")),
		dir: "bench", pattern: "^BenchmarkLateness$", benchtime: "1x",
	},
	punctual("memory", number(2)),
	punctual("zsetpoll-script", threeTimers("zsetpoll-script")),
	punctual("redisson", threeTimers("redisson")),
	punctual("keyspace", number(1000)), // its sweep
	punctual("rabbitmq", number(40)),
	punctual("sqlite", number(5)),
	punctual("postgres", number(10)),
	drains("zsetpoll", "asynq", 5, true),
	drains("zsetpoll", "asynq-tuned", 5, false),
	drains("zsetpoll", "beanstalkd", 1, false),
	drains("redisson", "asynq", 3, true),
	drains("redisson", "asynq-tuned", 3, false),
	drains("postgres", "river", 50, true),
	drains("postgres", "river-tuned", 6, true),
	drains("sqlite", "goqite", 10, true),
	drains("serve", "beanstalkd-synced", 1, true),
	{
		what: "100,000 due at once: redisson against Redisson in Java", unit: "×",
		value: at("BenchmarkRedissonBurst/release=4.7.0", "java/go"), limit: atLeast(number(50)),
		dir: "bench", pattern: "^BenchmarkRedissonBurst$/^release=4.7.0$", benchtime: "1x",
	},
	pushes("256 goroutines push: zsetpoll against asynq", singlePeers+"zsetpoll", singlePeers+"asynq", 2, true),
	pushes("256 goroutines push: zsetpoll against asynq-tuned", singlePeers+"zsetpoll", singlePeers+"asynq-tuned", 2, false),
	pushes("256 goroutines push: serve on a SQLite file against beanstalkd that syncs each", singlePeers+"serve", singlePeers+"beanstalkd-synced", 1, true),
	pushes("one goroutine, batches of 100: zsetpoll against asynq from 256, single calls", batchPeers+"zsetpoll", singlePeers+"asynq", 5, true),
	pushes("one goroutine, batches of 100: zsetpoll against asynq-tuned from 256, single calls", batchPeers+"zsetpoll", singlePeers+"asynq-tuned", 5, false),
	pushes("8 goroutines, batches of 100: zsetpoll against asynq from 256, single calls", atOncePeers+"zsetpoll", singlePeers+"asynq", 5, true),
	pushes("8 goroutines, batches of 100: zsetpoll against asynq-tuned from 256, single calls", atOncePeers+"zsetpoll", singlePeers+"asynq-tuned", 5, false),
	heavy("zsetpoll-script"), heavy("keyspace"), heavy("redisson"),
	flat("memory", false), flat("zsetpoll-script", true), flat("keyspace", true), flat("redisson", true), flat("sqlite", true), flat("postgres", true),
	{
		what: "memory: push, receive and ack, 100 a call", unit: "ns",
		value: at("BenchmarkThroughput/backend=memory/batch=100", "ns/op"), limit: atMost(number(1500)),
		dir: "bench", pattern: "^BenchmarkThroughput$/^backend=memory$/^batch=100$", benchtime: "0.3s",
	},
	footprintGoal("memory: overhead of each of 10 million pending messages", "overhead-B/msg", 64, "B"),
	footprintGoal("memory: pause for garbage at 10 million pending messages, median", "gc-pause-us", 1000, "µs"),
	idles("an idle queue", 1, 1, false),
	idles("1,000 idle queues of one process, together", 1000, 100, true),
	statements("postgres", "push from 256 goroutines", "BenchmarkPostgresPush", "push", 0.6),
	statements("postgres", "drain, 32 workers, without statistics", "BenchmarkPostgresDrain/statistics=false", "consume", 0.5),
	statements("postgres", "drain, 32 workers, with statistics", "BenchmarkPostgresDrain/statistics=true", "consume", 0.5),
	statements("sqlite", "push from 256 goroutines", "BenchmarkSQLitePush", "push", 0.7),
	statements("sqlite", "drain, 32 workers", "BenchmarkSQLiteDrain", "consume", 0.5),
	{
		what: "postgres: throughput at 800 a second beside a transaction that stays open for 3 minutes, against without", unit: "×", long: true,
		value: at("BenchmarkPostgresSnapshot", "held/free"), limit: atLeast(number(0.9)),
		dir: "bench", pattern: "^BenchmarkPostgresSnapshot$", benchtime: "1x",
	},
	wakes("sqlite", 50), wakes("postgres", 10),
	byHand("push, a call a message", "Push", "go", "raw-whole"), byHand("push, 100 a call", "Push", "go-batch", "raw-whole"),
	byHand("drain, 32 workers", "Drain", "go", "raw-whole"), byHand("drain, 100 a call", "Drain", "go-batch", "raw-whole"),
	byHand("push, 100 a call, against nothing but bodies", "Push", "go-batch", "raw"),
	byHand("drain, 100 a call, against nothing but bodies", "Drain", "go-batch", "raw"),
}

func early(store string) expression { return at("BenchmarkLateness/backend="+store, "early/op") }

func punctual(store string, most expression) goal {
	return goal{
		what: "lateness p99 at 2,000 a second: " + store, unit: "ms",
		value: at("BenchmarkLateness/backend="+store, "late-p99-ms"), limit: atMost(most),
		dir: "bench", pattern: "^BenchmarkLateness$/^backend=" + store + "$", benchtime: "1x",
	}
}

// threeTimers are 3 ms, or three bare timers and a round trip of the same run.
func threeTimers(store string) expression {
	line := "BenchmarkLateness/backend=" + store
	return greatest(number(3), sum(times(3, at(line, "bare-late-p99-ms")), at(line, "trip-p99-ms")))
}

func drains(ours, peer string, least float64, long bool) goal {
	return goal{
		what: "100,000 due at once: " + ours + " against " + peer, unit: "×", long: long,
		value: ratio(at(drainPeers+ours, "msgs/s"), at(drainPeers+peer, "msgs/s")), limit: atLeast(number(least)),
		dir: "bench/peers", pattern: "^BenchmarkDrainPeers$", benchtime: "1x",
	}
}

func pushes(what, ours, peer string, least float64, long bool) goal {
	return goal{
		what: what, unit: "×", long: long,
		value: ratio(at(ours, "msgs/s"), at(peer, "msgs/s")), limit: atLeast(number(least)),
		dir: "bench/peers", pattern: "^BenchmarkPushPeers$", benchtime: "1x",
	}
}

func heavy(store string) goal {
	return goal{
		what: "memory of Redis for a pending message of 100 bytes: " + store, unit: "B", long: true,
		value: at("BenchmarkPending/backend="+store+"/pending=100000", "B/pending"), limit: atMost(number(330)),
		dir: "bench", pattern: "^BenchmarkPending$/^backend=" + store + "$/^pending=100000$", benchtime: "1x",
	}
}

func flat(store string, long bool) goal {
	return goal{
		what: "cost of a message at 1 M pending against 1 k: " + store, unit: "×", long: long,
		value: at("BenchmarkDepth/backend="+store+"/due=now", "1M/1k"), limit: atMost(number(1.5)),
		dir: "bench", pattern: "^BenchmarkDepth$/^backend=" + store + "$/^due=now$", benchtime: "3x",
	}
}

func footprintGoal(what, metric string, most float64, unit string) goal {
	return goal{
		what: what, unit: unit, long: true,
		value: at("BenchmarkFootprint/backend=memory/pending=10000000", metric), limit: atMost(number(most)),
		dir: "bench", pattern: "^BenchmarkFootprint$/./^pending=10000000$", benchtime: "5x",
	}
}

func idles(what string, queues int, most float64, long bool) goal {
	name := "queues=" + strconv.Itoa(queues)
	line := func(store string) expression { return at("BenchmarkIdle/backend="+store+"/"+name, "cmds/s") }
	return goal{
		what: what + ", on any backend on Redis", unit: "commands/s", long: long,
		value: greatest(line("zsetpoll-script"), line("keyspace"), line("redisson")), limit: atMost(number(most)),
		dir: "bench", pattern: "^BenchmarkIdle$/./^" + name + "$", benchtime: "1x",
	}
}

// statements compares with the same statements by hand. Short loads say nothing of them.
func statements(store, what, line, side string, least float64) goal {
	return goal{
		what: store + " against its statements by hand: " + what, unit: "×", long: true,
		value: at(line, side+"/statements"), limit: atLeast(number(least)),
		dir: "bench", pattern: "^" + strings.ReplaceAll(line, "/", "$/^") + "$", benchtime: "1x",
	}
}

func wakes(store string, most float64) goal {
	return goal{
		what: "a push from elsewhere wakes an idle consumer within, p99: " + store, unit: "ms",
		value: at("BenchmarkWakeUp/backend="+store, "wake-p99-ms"), limit: atMost(number(most)),
		dir: "bench", pattern: "^BenchmarkWakeUp$/^backend=" + store + "$", benchtime: "1x",
	}
}

func byHand(what, load, side, hand string) goal {
	line := "BenchmarkRabbit" + load
	return goal{
		what: "rabbitmq against a program by hand: " + what, unit: "×",
		value: ratio(at(line, side+"-msgs/s"), at(line, hand+"-msgs/s")), limit: atLeast(number(0.8)),
		dir: "bench", pattern: "^BenchmarkRabbit" + load + "$", benchtime: "1x",
	}
}
