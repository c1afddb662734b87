package testenv

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

const (
	clusterNodes = 3
	clusterSlots = 16384
)

// localCluster is a Redis Cluster of processes started here.
type localCluster struct{ nodes []*localRedis }

func launchCluster(opts []Option) (*localCluster, error) {
	binary, err := redisKind.binary()
	if err != nil {
		return nil, err
	}
	c := &localCluster{}
	if err := c.launch(binary, newSettings(append(clusterOptions(), opts...))); err != nil {
		return nil, errors.Join(fmt.Errorf("starting a Redis Cluster: %w", err), c.remove())
	}
	return c, nil
}

func clusterOptions() []Option {
	return []Option{
		Directive("cluster-enabled", "yes"),
		Directive("cluster-announce-ip", localhost),
		// Long enough for a busy machine, short enough for a test of a node that is gone.
		Directive("cluster-node-timeout", "5000"),
		// A replica stays with its master, whatever happens to others'.
		Directive("cluster-allow-replica-migration", "no"),
		Directive("repl-diskless-sync-delay", "0"),
	}
}

func (c *localCluster) launch(binary string, set settings) error {
	for range clusterNodes * (1 + set.replicas) {
		node, err := launchRedis(binary, set)
		if err != nil {
			return err
		}
		c.nodes = append(c.nodes, node)
	}
	for i := range c.nodes {
		if err := c.join(i); err != nil {
			return err
		}
	}
	for i := clusterNodes; i < len(c.nodes); i++ {
		if err := c.nodes[i].replicate(c.nodes[i%clusterNodes]); err != nil {
			return err
		}
	}
	return c.awaitOK()
}

// join introduces a node to the first, and gives a master its share of the slots.
func (c *localCluster) join(i int) error {
	err := c.nodes[i].withClient(func(ctx context.Context, client *redis.Client) error {
		_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
			p.Do(ctx, "cluster", "set-config-epoch", i+1) // nodes with one epoch take seconds to agree
			if i < clusterNodes {
				p.ClusterAddSlotsRange(ctx, i*clusterSlots/clusterNodes, (i+1)*clusterSlots/clusterNodes-1)
			}
			if i > 0 {
				p.Do(ctx, "cluster", "meet", localhost, c.nodes[0].port, c.nodes[0].bus)
			}
			return nil
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("joining node %s to the Cluster: %w", c.nodes[i].addr(), err)
	}
	return nil
}

// replicate makes a node a replica of another, once it knows that one.
func (r *localRedis) replicate(master *localRedis) error {
	var id string
	if err := master.withClient(func(ctx context.Context, client *redis.Client) (err error) {
		id, err = client.Do(ctx, "cluster", "myid").Text()
		return err
	}); err != nil {
		return fmt.Errorf("asking node %s for its id: %w", master.addr(), err)
	}
	return await("node "+r.addr()+" to become a replica of "+master.addr(), func() (bool, error) {
		return false, r.withClient(func(ctx context.Context, client *redis.Client) error {
			return client.ClusterReplicate(ctx, id).Err()
		})
	})
}

func (c *localCluster) awaitOK() error {
	for _, node := range c.nodes {
		if err := node.awaitCluster(); err != nil {
			return err
		}
	}
	return nil
}

// awaitCluster returns when the node finds every slot served, and follows its master where it has
// one.
func (r *localRedis) awaitCluster() error {
	want := []string{
		"cluster_state:ok",
		fmt.Sprintf("cluster_slots_ok:%d", clusterSlots),
		fmt.Sprintf("cluster_size:%d", clusterNodes),
	}
	return await("node "+r.addr()+" to find the Cluster whole", func() (bool, error) {
		return false, r.withClient(func(ctx context.Context, client *redis.Client) error {
			info, err := client.ClusterInfo(ctx).Result()
			if err != nil {
				return err
			}
			return errors.Join(lacks(info, want), follows(ctx, client))
		})
	})
}

// follows returns an error while a replica is behind its master; a master follows nothing.
func follows(ctx context.Context, client *redis.Client) error {
	info, err := client.Info(ctx, "replication").Result()
	if err != nil || strings.Contains(info, "role:master\r\n") {
		return err
	}
	return lacks(info, []string{"master_link_status:up", "master_sync_in_progress:0"})
}

func lacks(info string, lines []string) error {
	for _, line := range lines {
		if !strings.Contains(info, line+"\r\n") {
			return fmt.Errorf("no %s in:\n%s", line, info)
		}
	}
	return nil
}

func (c *localCluster) addrs() []string {
	addrs := make([]string, len(c.nodes))
	for i, node := range c.nodes {
		addrs[i] = node.addr()
	}
	return addrs
}

func (c *localCluster) remove() error {
	var errs []error
	for _, node := range c.nodes {
		errs = append(errs, node.remove())
	}
	return errors.Join(errs...)
}
