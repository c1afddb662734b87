package chaos_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/chaos"
	"github.com/delayq/delayq/internal/judge"
	"github.com/delayq/delayq/internal/testenv"
)

// info reads a line of INFO; 0 where there is none.
func info(t *testing.T, c *redis.Client, section, key string) int64 {
	t.Helper()
	text, err := c.Info(t.Context(), section).Result()
	if err != nil {
		t.Fatalf("asking for %s: %v", key, err)
	}
	for line := range strings.SplitSeq(text, "\r\n") {
		if value, ok := strings.CutPrefix(line, key+":"); ok {
			n, _ := strconv.ParseInt(strings.TrimPrefix(value, "count="), 10, 64) // 0 for what is no number
			return n
		}
	}
	return 0
}

// redisFaults are what happens to a Redis server.
func redisFaults(s *testenv.RedisServer, admin *redis.Client) []*fault {
	return []*fault{
		serverKilled(s, admin), serverStopped(s, redisGreeting), scriptFlush(admin), clientKill(admin), wakeUpsDropped(admin), outOfMemory(admin), rightTaken(admin),
	}
}

func serverKilled(s *testenv.RedisServer, admin *redis.Client) *fault {
	var before int64
	return &fault{
		Kind: chaos.Kind{Name: "server kill -9", Weight: 1, Alone: true}, window: judge.Window{Breaks: true},
		on: func(t *testing.T, dice *rand.Rand) {
			before = info(t, admin, "server", "process_id")
			s.Kill()
			time.Sleep(time.Duration(dice.IntN(400)) * time.Millisecond) // for how long it is gone
			s.Restart()
		},
		off: func(t *testing.T) int { return count(info(t, admin, "server", "process_id") != before) },
	}
}

func serverStopped(s interface {
	Addr() string
	Pause()
	Resume()
}, g greeting) *fault {
	silent := 0
	return &fault{
		Kind: chaos.Kind{Name: "server SIGSTOP", Weight: 1, For: 900 * time.Millisecond, Alone: true}, window: judge.Window{Breaks: true},
		on: func(*testing.T, *rand.Rand) {
			s.Pause()
			_, answered := g.answer(s.Addr(), deaf)
			silent = count(!answered)
		},
		off: func(*testing.T) int { s.Resume(); return silent },
	}
}

func scriptFlush(admin *redis.Client) *fault {
	var cached int64
	return &fault{
		Kind: chaos.Kind{Name: "SCRIPT FLUSH", Weight: 3},
		on: func(t *testing.T, _ *rand.Rand) {
			cached = info(t, admin, "memory", "number_of_cached_scripts")
			must(t, admin.ScriptFlush(t.Context()).Err())
		},
		off: func(*testing.T) int { return int(cached) },
	}
}

func clientKill(admin *redis.Client) *fault {
	var killed int64
	return &fault{
		Kind: chaos.Kind{Name: "CLIENT KILL", Weight: 3}, window: judge.Window{Breaks: true},
		on:  func(t *testing.T, _ *rand.Rand) { killed = killClients(t, admin, "normal") },
		off: func(*testing.T) int { return int(killed) },
	}
}

func killClients(t *testing.T, admin *redis.Client, kind string) int64 {
	t.Helper()
	n, err := admin.Do(t.Context(), "client", "kill", "type", kind, "skipme", "yes").Int64()
	must(t, err)
	return n
}

// wakeUpsDropped cuts subscriptions again and again, and has the server tell of no expiries: what is published meanwhile is heard by nobody.
func wakeUpsDropped(admin *redis.Client) *fault {
	var killed int64
	return &fault{
		Kind: chaos.Kind{Name: "pub/sub dropped", Weight: 2, For: 500 * time.Millisecond},
		on: func(t *testing.T, _ *rand.Rand) {
			killed = killClients(t, admin, "pubsub")
			must(t, admin.ConfigSet(t.Context(), "client-output-buffer-limit", "pubsub 1 1 0").Err())
			must(t, admin.ConfigSet(t.Context(), "notify-keyspace-events", "").Err())
		},
		off: func(t *testing.T) int {
			killed += killClients(t, admin, "pubsub")
			must(t, admin.ConfigSet(t.Context(), "client-output-buffer-limit", "pubsub 32mb 8mb 60").Err())
			must(t, admin.ConfigSet(t.Context(), "notify-keyspace-events", "Ex").Err())
			killed += killClients(t, admin, "pubsub") // who subscribes anew looks whether there are events
			return int(killed)
		},
	}
}

// outOfMemory leaves the server no memory beyond what it uses: it refuses pushes and has to go on draining.
func outOfMemory(admin *redis.Client) *fault {
	var before int64
	return &fault{
		Kind: chaos.Kind{Name: "maxmemory", Weight: 2, For: 600 * time.Millisecond},
		on: func(t *testing.T, _ *rand.Rand) {
			before = info(t, admin, "errorstats", "errorstat_OOM")
			must(t, admin.ConfigSet(t.Context(), "maxmemory", "1mb").Err())
		},
		off: func(t *testing.T) int {
			must(t, admin.ConfigSet(t.Context(), "maxmemory", "0").Err())
			return int(info(t, admin, "errorstats", "errorstat_OOM") - before)
		},
	}
}

// rights are what scripts write with, and what they tell sleepers with. What adds comes first.
var rights = []string{"zadd", "hset", "zrem", "hdel", "publish", "zremrangebyrank", "incrby"}

// rightTaken takes a right away for a while, another each time, as an operator does who narrows a user's rights too far. Scripts fail half-way then.
func rightTaken(admin *redis.Client) *fault {
	var taken string
	turn := -1
	return &fault{
		Kind: chaos.Kind{Name: rightTakenName, Weight: 2, For: 500 * time.Millisecond}, window: judge.Window{Breaks: true},
		on: func(t *testing.T, _ *rand.Rand) {
			turn++
			taken = rights[turn%len(rights)]
			must(t, admin.ACLLogReset(t.Context()).Err())
			must(t, admin.ACLSetUser(t.Context(), "default", "-"+taken).Err())
		},
		off: func(t *testing.T) int {
			must(t, admin.ACLSetUser(t.Context(), "default", "+"+taken).Err())
			refused, err := admin.ACLLog(t.Context(), 1).Result()
			must(t, err)
			return len(refused)
		},
	}
}

const rightTakenName = "right taken away"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
