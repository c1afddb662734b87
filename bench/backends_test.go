// Package bench measures what delayq promises about speed, over every backend.
//
//	go test -bench . ./bench
//
// Backends on Redis need a redis-server on the PATH, or Docker, rabbitmq a rabbitmq-server, and
// postgres a PostgreSQL; without, they are skipped. Each store on Redis has a server of its own without persistence,
// rabbitmq one broker and postgres one server that write to disk, on this machine, that share its
// processors.
//
// One backend: -bench '/backend=memory'. Two commits are compared by make bench-compare, two
// backends with benchstat -col /backend. A benchmark fails when a promise is broken, an early
// or a lost message, and never because the machine is slow; the goals are in the comments, and
// make report holds docs/benchmarks.md against them.
package bench

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/bench/internal/load"
	"github.com/delayq/delayq/keyspace"
	"github.com/delayq/delayq/memory"
	"github.com/delayq/delayq/redisson"
	"github.com/delayq/delayq/sqlite"
	"github.com/delayq/delayq/zsetpoll"
)

// A target is a backend to measure. A new one joins by an entry in targets.
type target struct {
	name string

	// open returns an empty store of its own; it cleans up after itself.
	open func(testing.TB) backend.Backend

	// virtual stores run on the clock of delayq.WithClock.
	virtual bool

	// inProcess stores hold their messages in this process's heap.
	inProcess bool

	// most is how many messages to let wait there, where that is fewer than other stores take.
	most int

	// apart returns two backends on one empty store, as two processes have; nil on Redis and memory.
	apart func(testing.TB) (one, other backend.Backend)

	// onRedis makes a backend on a client; nil for stores elsewhere.
	onRedis func(redis.UniversalClient) backend.Backend
}

var targets = []target{
	{name: "memory", open: openMemory, virtual: true, inProcess: true},
	onRedis("zsetpoll-script", openZset(zsetpoll.Script)),
	onRedis("zsetpoll-arbitrate", openZset(zsetpoll.Arbitrate)),
	onRedis("zsetpoll-mover", openZset(zsetpoll.Mover)),
	onRedis("keyspace", openKeyspace),
	onRedis("redisson", openRedisson()),
	onRedis("redisson-noindex", openRedisson(redisson.NoIndex())),
	onRedis("redisson-envelope", openRedisson(redisson.WithCodec(redisson.Envelope))),
	{name: "rabbitmq", open: openRabbit, apart: twoRabbit, most: 20_000},
	{name: "postgres", open: openPostgres, apart: twoPostgres, virtual: true},
	{name: "sqlite", open: openSQLite, apart: twoSQLite, virtual: true},
}

func openMemory(testing.TB) backend.Backend { return memory.New() }

func openSQLite(tb testing.TB) backend.Backend {
	return sqlite.New(filepath.Join(tb.TempDir(), "delay.db"))
}

func twoSQLite(tb testing.TB) (one, other backend.Backend) {
	path := filepath.Join(tb.TempDir(), "delay.db")
	return sqlite.New(path), sqlite.New(path)
}

func openZset(m zsetpoll.Mode) func(redis.UniversalClient) backend.Backend {
	return func(c redis.UniversalClient) backend.Backend { return zsetpoll.New(c, zsetpoll.Claims(m)) }
}

func openKeyspace(c redis.UniversalClient) backend.Backend { return keyspace.New(c) }

func openRedisson(opts ...redisson.Option) func(redis.UniversalClient) backend.Backend {
	opts = append([]redisson.Option{redisson.WithCodec(redisson.Bytes)}, opts...)
	return func(c redis.UniversalClient) backend.Backend { return redisson.New(c, opts...) }
}

// overTargets runs a benchmark over each backend.
func overTargets(b *testing.B, run func(*testing.B, target)) {
	for _, t := range targets {
		b.Run("backend="+t.name, func(b *testing.B) { run(b, t) })
	}
}

// queue opens a queue that is closed when the benchmark ends.
func (t target) queue(b *testing.B, opts ...delayq.Option) delayq.Queue {
	b.Helper()
	store := t.open(b)
	opts = append(opts, delayq.WithBackend(store), load.Quiet)
	q, err := delayq.New(context.Background(), "bench", opts...)
	load.Must(b, err)
	b.Cleanup(func() {
		load.Must(b, q.Close())
		load.Must(b, store.Close())
	})
	return q
}
