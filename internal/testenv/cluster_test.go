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
	for i := range 100 {
		must(t, client.Set(context.Background(), fmt.Sprint("key", i), i, 0).Err())
	}
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
	ctx := context.Background()
	c := RedisCluster(t, AOF())
	client := c.Client(t)
	for i := range 30 {
		must(t, client.Set(ctx, fmt.Sprint("key", i), i, 0).Err())
	}
	node := c.Nodes()[1]
	awaitWritten(t, node.Client(t))
	node.Kill()
	node.Restart()
	c.AwaitOK()
	for i := range 30 {
		if got, err := client.Get(ctx, fmt.Sprint("key", i)).Int(); got != i || err != nil {
			t.Errorf("key%d is %d, %v", i, got, err)
		}
	}
}

func TestClusterReplicaTakesOver(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := RedisCluster(t, AOF(), Replicas(1), Directive("cluster-node-timeout", "1000"))
	if len(c.Nodes()) != 6 {
		t.Fatalf("%d nodes; want 6", len(c.Nodes()))
	}
	client := c.Client(t)
	for i := range 30 {
		must(t, client.Set(ctx, fmt.Sprint("key", i), i, 0).Err())
	}
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
	must(t, await("the replica to be promoted", func() (bool, error) {
		info, err := replica.Info(ctx, "replication").Result()
		return false, errors.Join(err, lacks(info, []string{"role:master"}))
	}))
	master.Restart()
	must(t, await("the old master to follow", func() (bool, error) {
		info, err := master.Client(t).Info(ctx, "replication").Result()
		return false, errors.Join(err, lacks(info, []string{"role:slave", "master_link_status:up"}))
	}))
	c.AwaitOK()
	for i := range 30 {
		if got, err := client.Get(ctx, fmt.Sprint("key", i)).Int(); got != i || err != nil {
			t.Errorf("key%d is %d, %v", i, got, err)
		}
	}
}
