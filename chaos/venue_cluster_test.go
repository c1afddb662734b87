package chaos_test

import (
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/chaos"
	"github.com/delayq/delayq/internal/judge"
	"github.com/delayq/delayq/internal/testenv"
)

// A ring is a Redis Cluster of which some node serves the queue's slot.
type ring struct {
	addrs   []string
	clients []*redis.Client
	ids     []string
	servers []*testenv.RedisServer
	slot    int64
	whole   func() // returns when every node finds it whole
}

func newRing(t *testing.T, opts ...testenv.Option) *ring {
	t.Helper()
	c := testenv.RedisCluster(t, append([]testenv.Option{testenv.AOF(), testenv.Directive("appendfsync", "always")}, opts...)...)
	r := &ring{addrs: c.Addrs(), servers: c.Nodes(), whole: c.AwaitOK}
	for _, s := range r.servers {
		client := s.Client(t, patiently)
		id, err := client.Do(t.Context(), "cluster", "myid").Text()
		must(t, err)
		r.clients, r.ids = append(r.clients, client), append(r.ids, id)
	}
	slot, err := r.clients[0].ClusterKeySlot(t.Context(), "{"+queueName+"}").Result()
	must(t, err)
	r.slot = slot
	return r
}

// owner is the node that serves the slot, by what the nodes say of themselves.
func (r *ring) owner(t *testing.T) int {
	t.Helper()
	shards, err := r.clients[0].ClusterShards(t.Context()).Result()
	must(t, err)
	for _, s := range shards {
		for _, some := range s.Slots {
			if some.Start <= r.slot && r.slot <= some.End {
				return slices.Index(r.ids, s.Nodes[slices.IndexFunc(s.Nodes, isMaster)].ID)
			}
		}
	}
	t.Fatalf("nobody serves slot %d", r.slot)
	return -1
}

func isMaster(n redis.Node) bool { return n.Role == "master" }

func clusterVenue(t *testing.T) *venue {
	t.Helper()
	r := newRing(t, testenv.Directive("cluster-node-timeout", "2000"))
	at := chaos.Endpoint{Backend: "zsetpoll", Cluster: r.addrs}
	return &venue{
		name: "zsetpoll, Cluster", rate: 1500, patient: time.Minute, repeats: true, left: remains, straight: at, bent: at,
		opens: []chaos.OpenFunc{at.Open}, faults: []*fault{slotMigrated(r), nodeKilled(r)},
	}
}

// slotMigrated moves the queue's slot to another master, key by key, as redis-cli does.
func slotMigrated(r *ring) *fault {
	moved := 0
	return &fault{
		Kind: chaos.Kind{Name: "slot migrated", Weight: 2, Alone: true}, window: judge.Window{Breaks: true},
		on: func(t *testing.T, dice *rand.Rand) {
			from := r.owner(t)
			to := (from + 1 + dice.IntN(len(r.addrs)-1)) % len(r.addrs)
			moved = r.migrate(t, from, to)
		},
		off: func(*testing.T) int { return moved },
	}
}

func (r *ring) migrate(t *testing.T, from, to int) (moved int) {
	t.Helper()
	must(t, r.clients[to].Do(t.Context(), "cluster", "setslot", r.slot, "importing", r.ids[from]).Err())
	must(t, r.clients[from].Do(t.Context(), "cluster", "setslot", r.slot, "migrating", r.ids[to]).Err())
	host, port, err := net.SplitHostPort(r.addrs[to])
	must(t, err)
	for {
		keys, err := r.clients[from].ClusterGetKeysInSlot(t.Context(), int(r.slot), 100).Result()
		must(t, err)
		if len(keys) == 0 {
			break
		}
		args := []any{"migrate", host, port, "", 0, 5000, "replace", "keys"}
		for _, k := range keys {
			args = append(args, k)
		}
		must(t, r.clients[from].Do(t.Context(), args...).Err())
		moved += len(keys)
	}
	for _, i := range []int{to, from} {
		must(t, r.clients[i].Do(t.Context(), "cluster", "setslot", r.slot, "node", r.ids[to]).Err())
	}
	poll(10*time.Second, func() bool { return r.owner(t) == to })
	return moved
}

// nodeKilled kills the master of the slot and starts it again: while it is away, the slot is.
func nodeKilled(r *ring) *fault {
	var before, after string
	return &fault{
		Kind: chaos.Kind{Name: "node kill -9", Weight: 1, Alone: true}, window: judge.Window{Breaks: true},
		on: func(t *testing.T, dice *rand.Rand) {
			i := r.owner(t)
			before = r.runID(t, i)
			r.servers[i].Kill()
			time.Sleep(time.Duration(dice.IntN(500)) * time.Millisecond) // for how long it is gone
			r.servers[i].Restart()
			after = r.runID(t, i)
		},
		off: func(*testing.T) int { return count(before != after) },
	}
}

func (r *ring) runID(t *testing.T, i int) string {
	t.Helper()
	id := ""
	poll(10*time.Second, func() bool {
		id = r.clients[i].InfoMap(t.Context(), "server").Val()["Server"]["run_id"]
		return id != ""
	})
	return id
}
