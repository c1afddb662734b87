package testenv

import (
	"testing"

	"github.com/redis/go-redis/v9"
)

// Cluster is a test's handle on a Redis Cluster of three masters and their replicas. Its methods
// end the test when they fail, so only the test's own goroutine may call them.
type Cluster struct {
	tb      testing.TB
	cluster *localCluster
	private bool
}

// RedisCluster returns a Cluster that no other test uses, and that ends with the test. It is
// always made of processes started here, whatever DELAYQ_REDIS_URL says. The options apply to
// every node.
func RedisCluster(tb testing.TB, opts ...Option) *Cluster {
	tb.Helper()
	cluster, err := launchCluster(opts)
	return &Cluster{tb: tb, cluster: own(tb, cluster, err), private: true}
}

// Addrs are the hosts and ports of the nodes, at first of the masters and then of their replicas.
func (c *Cluster) Addrs() []string { return c.cluster.addrs() }

// Nodes are the servers of the Cluster, one by one, as Addrs lists them.
func (c *Cluster) Nodes() []*RedisServer {
	nodes := make([]*RedisServer, len(c.cluster.nodes))
	for i, node := range c.cluster.nodes {
		nodes[i] = &RedisServer{handle{tb: c.tb, url: node.url(), kind: redisKind}}
		if c.private {
			nodes[i].server = node
		}
	}
	return nodes
}

// Client returns a client of the Cluster, which is closed when tb ends. It is as patient as that of a server.
func (c *Cluster) Client(tb testing.TB, tune ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	tb.Helper()
	opt := &redis.ClusterOptions{Addrs: c.Addrs(), ReadTimeout: busyTimeout, WriteTimeout: busyTimeout}
	for _, f := range tune {
		f(opt)
	}
	client := redis.NewClusterClient(opt)
	tb.Cleanup(func() { _ = client.Close() }) // the test may have closed it
	return client
}

// AwaitOK returns when every node finds the Cluster whole and every replica follows its master, for
// example after the restart of one.
func (c *Cluster) AwaitOK() {
	c.tb.Helper()
	if err := c.cluster.awaitOK(); err != nil {
		c.tb.Fatalf("%v", err)
	}
}
