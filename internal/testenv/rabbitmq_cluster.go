package testenv

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// RabbitNodes is a test's handle on a cluster of brokers. Its methods end the test when they fail,
// so only the test's own goroutine may call them.
type RabbitNodes struct {
	tb      testing.TB
	cluster *localRabbits
}

// RabbitCluster returns a cluster of n brokers that no other test uses, and that ends with the
// test. It is always made of processes started here, whatever DELAYQ_RABBITMQ_URL says. The options
// apply to every node. Users, vhosts and queues made at one node exist on all.
func RabbitCluster(tb testing.TB, n int, opts ...RabbitOption) *RabbitNodes {
	tb.Helper()
	cluster, err := launchRabbits(n, newRabbitSettings(opts))
	own(tb, cluster, err)
	tb.Cleanup(func() {
		for _, node := range cluster.nodes {
			logIfFailed(tb, node)
		}
	})
	return &RabbitNodes{tb: tb, cluster: cluster}
}

// Nodes are the brokers of the cluster. A node that was killed restarts only while
// another one runs that was up when it died. Restart starts a cluster that is down as a whole.
func (c *RabbitNodes) Nodes() []*RabbitServer {
	nodes := make([]*RabbitServer, len(c.cluster.nodes))
	for i, node := range c.cluster.nodes {
		nodes[i] = &RabbitServer{handle: handle{tb: c.tb, url: node.url(), kind: rabbitKind, server: node}, control: node}
	}
	return nodes
}

// URLs are the nodes' URLs.
func (c *RabbitNodes) URLs() []string {
	urls := make([]string, len(c.cluster.nodes))
	for i, node := range c.cluster.nodes {
		urls[i] = node.url()
	}
	return urls
}

// Restart starts all nodes that do not run, in parallel, and returns when they take connections.
func (c *RabbitNodes) Restart() {
	c.tb.Helper()
	if err := c.cluster.startAll(); err != nil {
		c.tb.Fatalf("cannot restart the cluster: %v", err)
	}
}

// AwaitOK returns when every node sees every other, for example after the restart of one.
func (c *RabbitNodes) AwaitOK() {
	c.tb.Helper()
	if err := c.cluster.awaitOK(); err != nil {
		c.tb.Fatalf("%v", err)
	}
}

// runningNodes reads a field that has two names: the one before RabbitMQ 3.11, and the one since.
const runningNodes = `case erlang:function_exported(rabbit_nodes, list_running, 0) of
	true -> rabbit_nodes:list_running();
	false -> rabbit_nodes:all_running()
end.`

// localRabbits is a cluster of brokers started here.
type localRabbits struct {
	epmd  *epmd
	nodes []*localRabbit
}

func launchRabbits(n int, set rabbitSettings) (*localRabbits, error) {
	if _, err := rabbitKind.binary(); err != nil {
		return nil, err
	}
	e, err := startEpmd()
	if err != nil {
		return nil, err
	}
	c := &localRabbits{epmd: e}
	if err := c.launch(n, set); err != nil {
		return nil, errors.Join(fmt.Errorf("starting a cluster of brokers: %w", err), c.remove())
	}
	return c, nil
}

func (c *localRabbits) launch(n int, set rabbitSettings) error {
	secrets := newRabbitSecrets()
	for range n {
		node, err := newLocalRabbit(c.epmd, secrets, set)
		if err != nil {
			return err
		}
		c.nodes = append(c.nodes, node)
	}
	if err := c.startAll(); err != nil {
		return err
	}
	for _, node := range c.nodes[1:] {
		if err := node.join(c.nodes[0]); err != nil {
			return err
		}
	}
	return c.awaitOK()
}

// join makes a new broker a member of another's cluster. Peer discovery would hang: in RabbitMQ 3.10
// nodes that start together wait for one another, and in 4.0 a node that starts alone waits.
func (r *localRabbit) join(other *localRabbit) error {
	for _, args := range [][]string{{"stop_app"}, {"join_cluster", other.node}, {"start_app"}} {
		if _, err := r.ctl(args...); err != nil {
			return err
		}
	}
	return nil
}

func (c *localRabbits) startAll() error {
	var started []*localRabbit
	for _, node := range c.nodes {
		if node.process != nil && !node.process.ended() {
			continue
		}
		if err := node.begin(); err != nil {
			return err
		}
		started = append(started, node)
	}
	for _, node := range started {
		if err := node.awaitReady(); err != nil {
			return err
		}
	}
	return nil
}

func (c *localRabbits) awaitOK() error {
	for _, node := range c.nodes {
		if err := await("node "+node.node+" to see all others", func() (bool, error) { return false, c.seenBy(node) }); err != nil {
			return err
		}
	}
	return nil
}

func (c *localRabbits) seenBy(node *localRabbit) error {
	running, err := node.eval(runningNodes)
	if err != nil {
		return err
	}
	for _, peer := range c.nodes {
		if !strings.Contains(running, peer.node) {
			return fmt.Errorf("no %s among %s", peer.node, running)
		}
	}
	return nil
}

func (c *localRabbits) remove() error {
	var errs []error
	for _, node := range c.nodes {
		errs = append(errs, node.remove())
	}
	return errors.Join(append(errs, c.epmd.remove())...)
}
