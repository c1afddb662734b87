package chaos

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/internal/judge"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/zsetpoll"
)

// A cluster is a Redis Cluster, one of whose nodes serves the queue's slot.
type cluster struct {
	*testenv.Cluster
	addrs   []string
	clients []*redis.Client
	ids     []string
	servers []*testenv.RedisServer
	slot    int64
}

func newCluster(t *testing.T, opts ...testenv.Option) *cluster {
	t.Helper()
	c := &cluster{Cluster: testenv.RedisCluster(t, durable(opts...)...)}
	c.addrs, c.servers = c.Addrs(), c.Nodes()
	for _, s := range c.servers {
		client := s.Client(t, retrying)
		id, err := client.Do(t.Context(), "cluster", "myid").Text()
		must(t, err)
		c.clients, c.ids = append(c.clients, client), append(c.ids, id)
	}
	slot, err := c.clients[0].ClusterKeySlot(t.Context(), "{"+queueName+"}").Result()
	must(t, err)
	c.slot = slot
	return c
}

// owner returns the node that serves the slot, as the first node knows it.
func (c *cluster) owner(t *testing.T) int {
	t.Helper()
	shards, err := c.clients[0].ClusterShards(t.Context()).Result()
	must(t, err)
	for _, s := range shards {
		for _, some := range s.Slots {
			if some.Start <= c.slot && c.slot <= some.End {
				master := slices.IndexFunc(s.Nodes, func(n redis.Node) bool { return n.Role == "master" })
				return slices.Index(c.ids, s.Nodes[master].ID)
			}
		}
	}
	t.Fatalf("no node serves slot %d", c.slot)
	return -1
}

func clusterTarget(t *testing.T) *target {
	t.Helper()
	c := newCluster(t, testenv.Directive("cluster-node-timeout", "2000"))
	return onRedis("Cluster", Endpoint{Backend: "zsetpoll", Cluster: c.addrs}, slotMigrated(c),
		serverKilled("node kill -9", func(t *testing.T) (*testenv.RedisServer, *redis.Client) {
			n := c.owner(t)
			return c.servers[n], c.clients[n]
		}))
}

// shardsTarget is a queue of 16 shards on a Cluster. Their number changes, slots move, and masters are
// killed.
func shardsTarget(t *testing.T) *target {
	t.Helper()
	c := newCluster(t, testenv.Directive("cluster-node-timeout", "2000"))
	at := Endpoint{Backend: "zsetpoll", Cluster: c.addrs, Shards: 16}
	return onRedis("Cluster, 16 shards", at, onAShard(c, slotMigrated(c)), resharded(t, at),
		serverKilled("node kill -9", func(t *testing.T) (*testenv.RedisServer, *redis.Client) {
			c.aShard(t, rand.IntN)
			n := c.owner(t)
			return c.servers[n], c.clients[n]
		}))
}

// shardsFailoverTarget is the same with a replica for each master, which lags behind when its master is
// killed.
func shardsFailoverTarget(t *testing.T) *target {
	t.Helper()
	c := newCluster(t, testenv.Replicas(1), testenv.Directive("cluster-node-timeout", "1000"))
	at := Endpoint{Backend: "zsetpoll", Cluster: c.addrs, Shards: 16}
	return onRedis("Cluster with replicas, 16 shards", at, onAShard(c, ownerKilled(c)), resharded(t, at))
}

// onAShard has a fault strike the slot of any shard.
func onAShard(c *cluster, f *fault) *fault {
	strike := f.strike
	f.strike = func(i *injection) func() int {
		c.AwaitOK()
		c.aShard(i.T, i.rng.IntN)
		return strike(i)
	}
	return f
}

// aShard chooses the slot of a shard, or of the queue's own name where no shard has keys.
func (c *cluster) aShard(t *testing.T, intN func(int) int) {
	t.Helper()
	var keys []string
	for _, client := range c.clients {
		some, err := client.Keys(t.Context(), "delayq:{"+queueName+"*").Result()
		must(t, err)
		keys = append(keys, some...)
	}
	if len(keys) == 0 {
		keys = []string{"{" + queueName + "}"}
	}
	slot, err := c.clients[0].ClusterKeySlot(t.Context(), keys[intN(len(keys))]).Result()
	must(t, err)
	c.slot = slot
}

// resharded changes the number of shards. It has an effect where it succeeds beside the other faults.
func resharded(t *testing.T, at Endpoint) *fault {
	t.Helper()
	client := at.client()
	b := zsetpoll.New(client, zsetpoll.Shards(at.Shards))
	t.Cleanup(func() { _, _ = b.Close(), client.Close() })
	return instant("resharded", 2, judge.Window{Elsewhere: true}, func(i *injection) int {
		ctx, cancel := context.WithTimeout(i.Context(), 10*time.Second)
		defer cancel()
		return count(b.Reshard(ctx, queueName, 1<<i.rng.IntN(6)) == nil)
	})
}

// slotMigrated moves the queue's slot to another master, key by key, as redis-cli does.
func slotMigrated(c *cluster) *fault {
	return instant("slot migrated", 2, breaks, func(i *injection) int {
		from := c.owner(i.T)
		return c.migrate(i.T, from, (from+1+i.rng.IntN(len(c.addrs)-1))%len(c.addrs))
	}).alone()
}

func (c *cluster) migrate(t *testing.T, from, to int) (moved int) {
	t.Helper()
	do := func(node int, args ...any) {
		t.Helper()
		must(t, c.clients[node].Do(t.Context(), args...).Err())
	}
	do(to, "cluster", "setslot", c.slot, "importing", c.ids[from])
	do(from, "cluster", "setslot", c.slot, "migrating", c.ids[to])
	host, port := split(t, c.addrs[to])
	for {
		keys, err := c.clients[from].ClusterGetKeysInSlot(t.Context(), int(c.slot), 100).Result()
		must(t, err)
		if len(keys) == 0 {
			break
		}
		args := []any{"migrate", host, port, "", 0, 5000, "replace", "keys"}
		for _, k := range keys {
			args = append(args, k)
		}
		do(from, args...)
		moved += len(keys)
	}
	for _, node := range []int{to, from} {
		do(node, "cluster", "setslot", c.slot, "node", c.ids[to])
	}
	poll(10*time.Second, func() bool { return c.owner(t) == to })
	return moved
}

// failoverTarget is a Redis Cluster with a replica for each master.
func failoverTarget(t *testing.T) *target {
	t.Helper()
	c := newCluster(t, testenv.Replicas(1), testenv.Directive("cluster-node-timeout", "1000"))
	return onRedis("Cluster with replicas", Endpoint{Backend: "zsetpoll", Cluster: c.addrs}, ownerKilled(c))
}

// ownerKilled kills the slot's master while its replica lags behind. The Cluster promotes the
// replica by itself, and its further writes stay. The old master comes back with all its data, and
// becomes a replica.
func ownerKilled(c *cluster) *fault {
	return instant("owner killed", 2, lagging, func(i *injection) int {
		old := c.owner(i.T)
		replica := c.replicaOf(i.T, old)
		// A password that the master does not know cuts the replication, and keeps it cut.
		configure(i.T, c.clients[replica], "masterauth", "unknown")
		killClients(i.T, c.clients[old], "replica")
		time.Sleep(time.Duration(i.rng.Int64N(lagging.Undo / 2))) // the replica lags behind by this much
		i.window.Start = time.Now().UnixNano()
		c.servers[old].Kill()
		configure(i.T, c.clients[replica], "masterauth", "")
		if !poll(30*time.Second, func() bool {
			return replication(i.T, c.clients[replica])["role"] == "master" &&
				strings.Contains(c.clients[replica].ClusterInfo(i.Context()).Val(), "cluster_state:ok")
		}) {
			i.Fatal("the replica is not promoted")
		}
		i.window.Safe = time.Now().UnixNano()
		c.servers[old].Restart()
		if !poll(30*time.Second, func() bool { return caughtUp(i.T, c.clients[old]) }) {
			i.Fatal("the old master does not follow the new one")
		}
		c.AwaitOK()
		return count(c.owner(i.T) == replica)
	}).alone()
}

// replicaOf finds the replica of a master.
func (c *cluster) replicaOf(t *testing.T, master int) int {
	t.Helper()
	_, port := split(t, c.addrs[master])
	for i, client := range c.clients {
		if info := replication(t, client); info["role"] == "slave" && info["master_port"] == port {
			return i
		}
	}
	t.Fatalf("node %d has no replica", master)
	return -1
}
