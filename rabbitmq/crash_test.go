package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/rabbitmq"
)

// awaitDue waits until all messages are due, and returns how many have not come.
func (r *tracker) awaitDue() (missing int) {
	var last time.Time
	r.mu.Lock()
	for _, due := range r.due {
		if due.After(last) {
			last = due
		}
	}
	r.mu.Unlock()
	time.Sleep(time.Until(last))
	return r.missing()
}

// survive pushes messages to workers, calls fault when a third have come, and waits for all
// confirmed messages. It calls remedy, if any, when messages stay away.
func (r *tracker) survive(n int, longest time.Duration, fault, remedy func()) {
	r.t.Helper()
	ctx, stop := context.WithTimeout(r.t.Context(), 8*time.Minute)
	defer stop()
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	for range 4 {
		all.Go(func() { r.take(ctx, 100) })
	}
	r.push(ctx, n, longest)
	await(r.t, "a third of the messages", func() bool { return r.arrived() >= n/3 })
	fault()
	recovered := time.Now()
	if remedy != nil && !r.allCame(longest+30*time.Second) {
		r.t.Logf("%d messages stay away", r.missing())
		remedy()
	}
	if !r.allCame(longest + 4*time.Minute) {
		r.t.Fatalf("%d confirmed messages never came, due before: %v", r.missing(), r.awaited())
	}
	took := time.Since(recovered)
	stop()
	all.Wait()
	r.t.Logf("%d pushed, %d confirmed, all there %v after the recovery, the latest %v late; came again: %v", n, len(r.confirmed),
		took.Round(time.Millisecond), r.latest.Round(time.Millisecond), r.again)
	if len(r.confirmed) < n/2 {
		r.t.Errorf("only %d of %d pushes were confirmed", len(r.confirmed), n)
	}
}

// allCame waits until all confirmed messages have come.
func (r *tracker) allCame(within time.Duration) bool {
	for end := time.Now().Add(within); r.missing() > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// scale is how many messages with how long delays a crash test has.
func scale(t *testing.T) (n int, longest time.Duration) {
	t.Helper()
	if !testenv.Runs(t, testenv.All) {
		return 2000, 5 * time.Second
	}
	return 20_000, 20 * time.Second
}

// triesSoon has levels try again after 3 s to pass on messages. The default of 180 s is too long
// for tests.
func triesSoon() testenv.RabbitOption {
	return testenv.RabbitAdvanced("dead_letter_worker_publisher_confirm_timeout", "3000")
}

// TestBrokerKilled kills the broker while messages are passed from level to level, and starts it
// again. A message on its way to a queue that starts later than its level waits for the next try.
func TestBrokerKilled(t *testing.T) {
	t.Parallel()
	server := testenv.RabbitMQ(t, testenv.PrivateRabbit(), triesSoon())
	q := open(t, server.URL())
	t.Cleanup(func() { tellWhere(t, server) })
	server.Sync()
	n, longest := scale(t)
	newTracker(t, q).survive(n, longest, func() {
		server.Kill()
		server.Restart()
	}, nil)
}

// moveLeaders has another node lead each queue, as docs/rabbitmq.md says.
const moveLeaders = `[rabbit_quorum_queue:transfer_leadership(Q, hd([N || N <- [node() | nodes()],
	N =/= element(2, amqqueue:get_pid(Q))])) || Q <- rabbit_amqqueue:list(), amqqueue:is_quorum(Q)].`

// inWithADeadNode puts a test into the tier Nightly on RabbitMQ before 4. That needs minutes, and
// an operator, to pass on the messages of a dead node (rabbitmq-server#9221).
func inWithADeadNode(t *testing.T) {
	t.Helper()
	testenv.In(t, testenv.All)
	conn, err := amqp.Dial(testenv.SharedRabbitMQ(t).URL())
	must(t, err)
	defer func() { must(t, conn.Close()) }()
	var major int
	version, _ := conn.Properties["version"].(string)
	if _, err := fmt.Sscanf(version, "%d.", &major); err != nil {
		t.Fatalf("a broker of version %q: %v", version, err)
	}
	if major < 4 {
		testenv.In(t, testenv.Nightly)
	}
}

// TestNodeKilled kills one node of three, which leads all queues, until all messages are due.
// Until the node is back or other nodes lead, RabbitMQ 3.10 passes on none of the messages between
// levels, and few later ones. If the node served the handle, the handle's unacked
// messages may stay away until the leaders of users' queues move too (TestNodeKilledUnderAHandler).
// The test moves them then.
func TestNodeKilled(t *testing.T) {
	inWithADeadNode(t)
	cluster := testenv.RabbitCluster(t, 3, triesSoon())
	nodes := cluster.Nodes()
	n, longest := scale(t)
	back := func() { nodes[0].Restart(); cluster.AwaitOK() }
	moved := func() { nodes[1].Eval(moveLeaders) }
	dead := nameOf(nodes[0])
	moveUsers := func() { nodes[1].Eval(moveLeadersOfUsers) }
	forget := func() { nodes[1].Ctl("forget_cluster_node", dead); moveUsers() }
	for _, test := range []struct {
		namespace string
		home      int // the node that the backend is connected to
		n         int
		longest   time.Duration
		heal      func()
		remedy    func()
	}{
		{"ours", 0, n, longest, back, moveUsers},
		{"another", 1, n, longest, back, nil},
		{"for-good", 0, 2000, 5 * time.Second, moved, forget},
	} {
		t.Run(test.namespace, func(t *testing.T) {
			r := newTracker(t, openOnCluster(t, nodes, test.home, test.namespace))
			t.Cleanup(func() { tellWhere(t, nodes[1]) })
			r.survive(test.n, test.longest, func() {
				nodes[0].Kill()
				t.Logf("%d messages have not come while the node was dead", r.awaitDue())
				test.heal()
			}, test.remedy)
		})
	}
}

// tellWhere logs where the broker has the messages of a failed test.
func tellWhere(t *testing.T, node *testenv.RabbitServer) {
	if t.Failed() {
		t.Log(node.Ctl("list_queues", "name", "messages_ready", "messages_unacknowledged", "consumers", "leader"))
		t.Log(node.Ctl("list_channels", "pid", "name", "consumer_count", "messages_unacknowledged"))
		t.Log(node.Ctl("list_consumers"))
	}
}

// moveLeadersOfUsers does so only for users' queues and their dead letters, which is quicker.
const moveLeadersOfUsers = `[rabbit_quorum_queue:transfer_leadership(Q, hd([N || N <- [node() | nodes()],
	N =/= element(2, amqqueue:get_pid(Q))])) || Q <- rabbit_amqqueue:list(), amqqueue:is_quorum(Q),
	{_, _, _, Name} <- [amqqueue:get_name(Q)], re:run(Name, "[.](q|dead)[.]") =/= nomatch].`

// nameOf returns the name of a running node.
func nameOf(node *testenv.RabbitServer) string { return strings.TrimSpace(node.Eval("node().")) }

// TestNodeKilledUnderAHandler kills the node that a worker is connected to. The worker handles its
// only message and waits for no more, so its subscription has ended. Another node leads the queue.
// Before RabbitMQ 4.3 that node does not monitor a connection that has ended its subscriptions
// (docs/rabbitmq.md). It hands the message out again only when the node is back, or forgotten, and
// leaders move.
func TestNodeKilledUnderAHandler(t *testing.T) {
	inWithADeadNode(t)
	for what, heal := range map[string]func(cluster *testenv.RabbitNodes, lost string){
		"back":      func(c *testenv.RabbitNodes, _ string) { c.Nodes()[1].Restart(); c.AwaitOK() },
		"forgotten": func(c *testenv.RabbitNodes, lost string) { c.Nodes()[0].Ctl("forget_cluster_node", lost) },
	} {
		t.Run(what, func(t *testing.T) {
			cluster := testenv.RabbitCluster(t, 3)
			nodes := cluster.Nodes()
			lost := nameOf(nodes[1])
			q := openOnCluster(t, nodes, 1, "handler")
			must(t, q.Schedule(deadline(t, patience), message("held", 0))...)
			held := receiveOne(deadline(t, patience), t, q, "held")
			awaitNoConsumers(t, nodes[0])
			nodes[1].Kill()
			heal(cluster, lost)
			again := receiveAgain(t, q, func() { nodes[0].Eval(moveLeadersOfUsers) })
			if again.ID != "held" || again.Attempt != 2 {
				t.Errorf("got %+v, want the second attempt of the message", again)
			}
			if err := q.Ack(deadline(t, patience), leases([]backend.Delivery{held}))[0]; !errors.Is(err, backend.ErrLeaseLost) {
				t.Errorf("the ack of the lost message: %v, want ErrLeaseLost", err)
			}
		})
	}
}

// receiveAgain waits for a message, and calls remedy if it does not come.
func receiveAgain(t *testing.T, q backend.Queue, remedy func()) backend.Delivery {
	t.Helper()
	again, err := receiveWithin(t, q, 10*time.Second)
	if err != nil {
		t.Logf("it has not come again without the remedy: %v", err)
		remedy()
		again, err = receiveWithin(t, q, patience)
	}
	if err != nil {
		t.Fatalf("the message has not come again though other nodes lead: %v", err)
	}
	return again[0]
}

func receiveWithin(t *testing.T, q backend.Queue, d time.Duration) ([]backend.Delivery, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	return q.Receive(ctx, 1, time.Minute)
}

// awaitNoConsumers waits until there are no subscriptions.
func awaitNoConsumers(t *testing.T, node *testenv.RabbitServer) {
	t.Helper()
	for range 20 {
		if !strings.Contains(node.Ctl("list_consumers"), "delayq-") {
			return
		}
	}
	t.Fatal("a subscription does not end though no Receive waits")
}

// openOnCluster opens a queue of the namespace on the node home. The first node leads the queues.
func openOnCluster(t *testing.T, nodes []*testenv.RabbitServer, home int, namespace string) backend.Queue {
	t.Helper()
	ns := rabbitmq.Namespace(namespace)
	open(t, nodes[0].URL(), ns)
	for _, node := range nodes {
		node.Sync()
	}
	return open(t, nodes[home].URL(), ns, rabbitmq.Hosts(nodes[1].Addr(), nodes[2].Addr()))
}
