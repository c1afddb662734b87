package chaos

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/internal/judge"
	"github.com/delayq/delayq/internal/testenv"
)

func info(t *testing.T, c *redis.Client, section, key string) int64 {
	t.Helper()
	n, err := infoOf(t.Context(), c, section, key)
	must(t, err)
	return n
}

// redisFaults are the faults of a Redis server.
func redisFaults(s *testenv.RedisServer, admin *redis.Client) []*fault {
	return []*fault{
		serverKilled("server kill -9", func(*testing.T) (*testenv.RedisServer, *redis.Client) { return s, admin }), serverStopped(s, redisGreeting),
		instant("SCRIPT FLUSH", 3, judge.Window{}, func(i *injection) int {
			cached := info(i.T, admin, "memory", "number_of_cached_scripts")
			must(i.T, admin.ScriptFlush(i.Context()).Err())
			return int(cached)
		}),
		instant("CLIENT KILL", 3, breaks, func(i *injection) int { return killClients(i.T, admin, "normal") }),
		wakeUpsDropped(admin), outOfMemory(admin), rightTaken(admin),
	}
}

// serverKilled kills a server and starts it again. It is down meanwhile.
func serverKilled(name string, choose func(*testing.T) (*testenv.RedisServer, *redis.Client)) *fault {
	return instant(name, 1, breaks, func(i *injection) int {
		s, admin := choose(i.T)
		before := info(i.T, admin, "server", "process_id")
		s.Kill()
		time.Sleep(time.Duration(i.rng.IntN(500)) * time.Millisecond) // it is down for this long
		s.Restart()
		return count(info(i.T, admin, "server", "process_id") != before)
	}).alone()
}

func serverStopped(s interface {
	Addr() string
	Pause()
	Resume()
}, g greeting) *fault {
	return lasting("server SIGSTOP", 1, 900*time.Millisecond, breaks, func(*injection) func() int {
		s.Pause()
		effect := g.silent(s.Addr())
		return func() int { s.Resume(); return effect }
	}).alone()
}

func killClients(t *testing.T, admin *redis.Client, kind string) int {
	t.Helper()
	n, err := admin.Do(t.Context(), "client", "kill", "type", kind, "skipme", "yes").Int()
	must(t, err)
	return n
}

// wakeUpsDropped cuts subscriptions again and again, and makes the server publish no expiries. No
// client receives what is published meanwhile.
func wakeUpsDropped(admin *redis.Client) *fault {
	return lasting("pub/sub dropped", 2, 500*time.Millisecond, judge.Window{}, func(i *injection) func() int {
		killed := killClients(i.T, admin, "pubsub")
		configure(i.T, admin, "client-output-buffer-limit", "pubsub 1 1 0")
		configure(i.T, admin, "notify-keyspace-events", "")
		return func() int {
			killed += killClients(i.T, admin, "pubsub")
			configure(i.T, admin, "client-output-buffer-limit", "pubsub 32mb 8mb 60")
			configure(i.T, admin, "notify-keyspace-events", "Ex")
			return killed + killClients(i.T, admin, "pubsub") // a new subscriber checks for these events
		}
	})
}

func configure(t *testing.T, admin *redis.Client, name, value string) {
	t.Helper()
	must(t, admin.ConfigSet(t.Context(), name, value).Err())
}

// outOfMemory leaves the server no memory beyond what it uses. It rejects pushes, and has to go on
// draining.
func outOfMemory(admin *redis.Client) *fault {
	return lasting("maxmemory", 2, 600*time.Millisecond, judge.Window{}, func(i *injection) func() int {
		before := info(i.T, admin, "errorstats", "errorstat_OOM")
		configure(i.T, admin, "maxmemory", "1mb")
		return func() int {
			configure(i.T, admin, "maxmemory", "0")
			return int(info(i.T, admin, "errorstats", "errorstat_OOM") - before)
		}
	})
}

// rights are the commands with which scripts write and wake workers. Those that add come first.
var rights = []string{"zadd", "hset", "zrem", "hdel", "publish", "zremrangebyrank", "incrby"}

const rightTakenName = "right taken away"

// rightTaken takes away each right in turn for a while, as an operator does who narrows a user's
// rights too far. Scripts fail half-way then.
func rightTaken(admin *redis.Client) *fault {
	turn := -1
	return lasting(rightTakenName, 2, 500*time.Millisecond, breaks, func(i *injection) func() int {
		turn++
		taken := rights[turn%len(rights)]
		must(i.T, admin.ACLLogReset(i.Context()).Err())
		must(i.T, admin.ACLSetUser(i.Context(), "default", "-"+taken).Err())
		return func() int {
			must(i.T, admin.ACLSetUser(i.Context(), "default", "+"+taken).Err())
			rejected, err := admin.ACLLog(i.Context(), 1).Result()
			must(i.T, err)
			return len(rejected)
		}
	})
}
