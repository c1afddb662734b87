package testenv

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestRedisCluster(t *testing.T) {
	t.Parallel()
	c := SharedRedisCluster(t)
	client := c.Client(t)
	if len(c.Addrs()) != 3 || len(c.Nodes()) != 3 {
		t.Fatalf("addresses %v, %d nodes; want 3", c.Addrs(), len(c.Nodes()))
	}
	mustFill(t, client, 100)
	for _, node := range c.Nodes() {
		n, err := node.Client(t).DBSize(context.Background()).Result()
		if n == 0 || n == 100 || err != nil {
			t.Errorf("node %s has %d of 100 keys, %v", node.Addr(), n, err)
		}
		if node.Private() {
			t.Error("a node of the shared Cluster is private")
		}
	}
}

func TestClusterScripts(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := SharedRedisCluster(t).Client(t)
	script := redis.NewScript(`redis.call('SET', KEYS[1], 'x') return redis.call('SET', KEYS[2], 'y')`)
	must(t, script.Run(ctx, client, []string{"{queue}:a", "{queue}:b"}).Err())
	err := script.Run(ctx, client, []string{"a", "b"}).Err()
	if err == nil || !strings.Contains(err.Error(), "CROSSSLOT") {
		t.Errorf("keys of two slots give %v", err)
	}
}

func TestClusterNodeRestarts(t *testing.T) {
	t.Parallel()
	c := RedisCluster(t, AOF())
	client := c.Client(t)
	mustFill(t, client, 30)
	node := c.Nodes()[1]
	awaitWritten(t, node.Client(t))
	node.Kill()
	node.Restart()
	c.AwaitOK()
	mustHave(t, client, 30)
}

func TestClusterReplicaTakesOver(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := RedisCluster(t, AOF(), Replicas(1), Directive("cluster-node-timeout", "15000"))
	if len(c.Nodes()) != 6 {
		t.Fatalf("%d nodes; want 6", len(c.Nodes()))
	}
	client := c.Client(t)
	mustFill(t, client, 30)
	master, replica := c.Nodes()[1], c.Nodes()[4].Client(t)
	n, err := master.Client(t).DBSize(ctx).Result()
	must(t, err)
	must(t, await("the replica to have all", func() (bool, error) {
		got, err := replica.DBSize(ctx).Result()
		if err == nil && got != n {
			err = fmt.Errorf("it has %d of %d keys", got, n)
		}
		return false, err
	}))
	master.Kill()
	awaitReplication(t, replica, "the replica to be promoted", "role:master")
	master.Restart()
	awaitReplication(t, master.Client(t), "the old master to follow", "role:slave", "master_link_status:up")
	c.AwaitOK()
	mustHave(t, client, 30)
}

// mustHave checks what mustFill wrote.
func mustHave(t *testing.T, client redis.UniversalClient, keys int) {
	t.Helper()
	for i := range keys {
		if got, err := client.Get(context.Background(), fmt.Sprint("key", i)).Int(); got != i || err != nil {
			t.Errorf("key%d is %d, %v", i, got, err)
		}
	}
}

// awaitReplication waits until a node's replication is as the lines say.
func awaitReplication(t *testing.T, client *redis.Client, what string, lines ...string) {
	t.Helper()
	must(t, await(what, func() (bool, error) {
		info, err := client.Info(context.Background(), "replication").Result()
		return false, errors.Join(err, lacks(info, lines))
	}))
}
