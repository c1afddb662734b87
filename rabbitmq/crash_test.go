package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/rabbitmq"
)

// A book holds what was pushed against what comes.
type book struct {
	t *testing.T
	q backend.Queue

	mu        sync.Mutex
	due       map[string]time.Time // of what the broker has confirmed, or may have
	confirmed map[string]bool
	came      map[string]int
	acked     map[string]bool
	again     map[string]int // by reason
	latest    time.Duration  // after its time
}

func newBook(t *testing.T, q backend.Queue) *book {
	return &book{
		t: t, q: q, due: make(map[string]time.Time), confirmed: make(map[string]bool), came: make(map[string]int),
		acked: make(map[string]bool), again: make(map[string]int),
	}
}

// push pushes n messages with random delays, and remembers which ones the broker has confirmed.
func (b *book) push(ctx context.Context, n int, longest time.Duration) {
	const size = 250
	for first := 0; first < n; first += size {
		ms := make([]backend.Message, min(size, n-first))
		b.mu.Lock()
		for i := range ms {
			ms[i] = message(fmt.Sprint("m", first+i), rand.N(longest))[0]
			b.due[ms[i].ID] = time.Now().Add(ms[i].Delay)
		}
		b.mu.Unlock()
		errs := b.q.Schedule(ctx, ms)
		b.mu.Lock()
		for i := range ms {
			b.confirmed[ms[i].ID] = errs == nil || errs[i] == nil
		}
		b.mu.Unlock()
	}
}

// take takes and acknowledges until the context ends.
func (b *book) take(ctx context.Context) {
	for {
		ds, err := b.q.Receive(ctx, 100, time.Minute)
		if err != nil {
			return
		}
		b.note(ds, time.Now())
		errs := b.q.Ack(ctx, leases(ds))
		b.mu.Lock()
		for i := range ds {
			b.acked[ds[i].ID] = errs == nil || errs[i] == nil
		}
		b.mu.Unlock()
	}
}

func (b *book) note(ds []backend.Delivery, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range ds {
		due, ok := b.due[d.ID]
		if !ok || now.Before(due) || now.Before(d.Due) || string(d.Body) != "body of "+d.ID {
			b.t.Errorf("%v: got %+v, due at %v", now, d, due)
		}
		b.latest = max(b.latest, now.Sub(due))
		if b.came[d.ID]++; b.came[d.ID] > 1 {
			b.again[b.reason(d)]++
		}
	}
}

// reason tells why a message came again.
func (b *book) reason(d backend.Delivery) string {
	switch {
	case d.Attempt == 1:
		return "it was passed on twice, or its ack was lost with the count"
	case b.acked[d.ID]:
		return "the ack was read, and lost with the broker"
	default:
		return "it was held, or its ack was under way"
	}
}

// missing counts what was confirmed and has not come.
func (b *book) missing() int { return len(b.awaited()) }

// awaited returns what was confirmed and has not come, with the time since it was due.
func (b *book) awaited() map[string]time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	ids := make(map[string]time.Duration)
	for id, ok := range b.confirmed {
		if ok && b.came[id] == 0 {
			ids[id] = time.Since(b.due[id])
		}
	}
	return ids
}

func (b *book) arrived() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.came)
}

// awaitDue waits until all is due, and returns how many messages have not come by then.
func (b *book) awaitDue() (missing int) {
	var last time.Time
	b.mu.Lock()
	for _, due := range b.due {
		if due.After(last) {
			last = due
		}
	}
	b.mu.Unlock()
	time.Sleep(time.Until(last))
	return b.missing()
}

// survive pushes messages, has some workers take them, breaks something in the middle, and waits
// for all that was confirmed. If there is a remedy for what may stay away, it is used when
// something does.
func (b *book) survive(n int, longest time.Duration, breakSomething, remedy func()) {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.t.Context(), 8*time.Minute)
	defer stop()
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	for range 4 {
		all.Go(func() { b.take(ctx) })
	}
	b.push(ctx, n, longest)
	await(b.t, "a third of the messages", func() bool { return b.arrived() >= n/3 })
	breakSomething()
	mended := time.Now()
	if remedy != nil && !b.allCame(longest+30*time.Second) {
		b.t.Logf("%d messages stay away", b.missing())
		remedy()
	}
	if !b.allCame(longest + 4*time.Minute) {
		b.t.Fatalf("%d confirmed messages never came, due before: %v", b.missing(), b.awaited())
	}
	took := time.Since(mended)
	stop()
	all.Wait()
	b.report(n, took)
}

// allCame waits until all that was confirmed has come.
func (b *book) allCame(within time.Duration) bool {
	for end := time.Now().Add(within); b.missing() > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// report tells of what everybody has finished with.
func (b *book) report(n int, took time.Duration) {
	b.t.Helper()
	confirmed := 0
	for _, ok := range b.confirmed {
		if ok {
			confirmed++
		}
	}
	b.t.Logf("%d pushed, %d confirmed, all there %v after it was mended, the latest %v late; came again: %v", n, confirmed,
		took.Round(time.Millisecond), b.latest.Round(time.Millisecond), b.again)
	if confirmed < n/2 {
		b.t.Errorf("only %d of %d pushes were confirmed", confirmed, n)
	}
}

// scale is how many messages with how long delays a crash test has.
func scale(t *testing.T) (n int, longest time.Duration) {
	t.Helper()
	if !testenv.Runs(t, testenv.All) {
		return 2000, 5 * time.Second
	}
	return 20_000, 20 * time.Second
}

// triesSoon has levels try again after 3 s what they could not pass on. By default that is 180 s,
// which would take the tests too long.
func triesSoon() testenv.RabbitOption {
	return testenv.RabbitAdvanced("dead_letter_worker_publisher_confirm_timeout", "3000")
}

// TestBrokerKilled kills the broker while messages are passed from level to level, and starts it
// again. What a level was just passing on to a queue that comes up later than itself waits for the
// next try.
func TestBrokerKilled(t *testing.T) {
	t.Parallel()
	server := testenv.RabbitMQ(t, testenv.PrivateRabbit(), triesSoon())
	q := open(t, server.URL())
	t.Cleanup(func() { tellWhere(t, server) })
	server.Sync()
	n, longest := scale(t)
	newBook(t, q).survive(n, longest, func() {
		server.Kill()
		server.Restart()
	}, nil)
}

// moveLeaders has another node lead each queue, as docs/rabbitmq.md says.
const moveLeaders = `[rabbit_quorum_queue:transfer_leadership(Q, hd([N || N <- [node() | nodes()],
	N =/= element(2, amqqueue:get_pid(Q))])) || Q <- rabbit_amqqueue:list(), amqqueue:is_quorum(Q)].`

// inWithADeadNode puts a test into the tier Nightly on RabbitMQ before 4, which needs minutes, and an operator, to pass on
// what a dead node had (rabbitmq-server#9221).
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
// RabbitMQ 3.10 passes on the messages that its levels were passing on, and most later ones, only
// when the node is back or other nodes lead. If the node served the handle, the handle's unacked
// messages may stay away until the leaders of users' queues move too (TestNodeKilledUnderAHandler).
// The test moves them then.
func TestNodeKilled(t *testing.T) {
	inWithADeadNode(t)
	cluster := testenv.RabbitCluster(t, 3, triesSoon())
	nodes := cluster.Nodes()
	n, longest := scale(t)
	back := func() { nodes[0].Restart(); cluster.AwaitOK() }
	moved := func() { nodes[1].Ctl("eval", moveLeaders) }
	dead := nameOf(nodes[0])
	moveUsers := func() { nodes[1].Ctl("eval", moveLeadersOfUsers) }
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
			b := newBook(t, openOnCluster(t, nodes, test.home, test.namespace))
			t.Cleanup(func() { tellWhere(t, nodes[1]) })
			b.survive(test.n, test.longest, func() {
				nodes[0].Kill()
				t.Logf("%d messages have not come while the node was dead", b.awaitDue())
				test.heal()
			}, test.remedy)
		})
	}
}

// tellWhere tells where the broker has the messages of a test that failed.
func tellWhere(t *testing.T, node *testenv.RabbitServer) {
	if t.Failed() {
		t.Log(node.Ctl("list_queues", "name", "messages_ready", "messages_unacknowledged", "consumers", "leader"))
		t.Log(node.Ctl("list_channels", "pid", "name", "consumer_count", "messages_unacknowledged"))
		t.Log(node.Ctl("list_consumers"))
	}
}

// moveLeadersOfUsers does so for the queues of users and their dead letters alone, which is
// quicker.
const moveLeadersOfUsers = `[rabbit_quorum_queue:transfer_leadership(Q, hd([N || N <- [node() | nodes()],
	N =/= element(2, amqqueue:get_pid(Q))])) || Q <- rabbit_amqqueue:list(), amqqueue:is_quorum(Q),
	{_, _, _, Name} <- [amqqueue:get_name(Q)], re:run(Name, "[.](q|dead)[.]") =/= nomatch].`

// nameOf is the name of a node that lives.
func nameOf(node *testenv.RabbitServer) string { return strings.TrimSpace(node.Ctl("eval", "node().")) }

// TestNodeKilledUnderAHandler kills the node that a worker is connected to while the worker is at
// work on its only message and waits for no more, so that its subscription has ended. Another node
// leads the queue. Before RabbitMQ 4.3 that node does not monitor a connection that has ended its
// subscriptions (docs/rabbitmq.md). It hands the message out again only when the node is back, or
// forgotten, and leaders move.
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
			must(t, q.Schedule(t.Context(), message("held", 0))...)
			held := receiveOne(t.Context(), t, q, "held")
			awaitNoConsumers(t, nodes[0])
			nodes[1].Kill()
			heal(cluster, lost)
			again := receiveAgain(t, q, func() { nodes[0].Ctl("eval", moveLeadersOfUsers) })
			if again.ID != "held" || again.Attempt != 2 {
				t.Errorf("got %+v, want the second attempt of the message", again)
			}
			if err := q.Ack(t.Context(), leases([]backend.Delivery{held}))[0]; !errors.Is(err, backend.ErrLeaseLost) {
				t.Errorf("the ack of what was lost: %v, want ErrLeaseLost", err)
			}
		})
	}
}

// receiveAgain waits for a message that comes by itself, or else after a remedy.
func receiveAgain(t *testing.T, q backend.Queue, remedy func()) backend.Delivery {
	t.Helper()
	again, err := receiveWithin(t, q, 10*time.Second)
	if err != nil {
		t.Logf("it has not come again by itself: %v", err)
		remedy()
		again, err = receiveWithin(t, q, 30*time.Second)
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

// openOnCluster has the first node lead the queues of the namespace, and another one serve the
// handle, if that is home.
func openOnCluster(t *testing.T, nodes []*testenv.RabbitServer, home int, namespace string) backend.Queue {
	t.Helper()
	ns := rabbitmq.Namespace(namespace)
	open(t, nodes[0].URL(), ns)
	for _, node := range nodes {
		node.Sync()
	}
	return open(t, nodes[home].URL(), ns, rabbitmq.Hosts(nodes[1].Addr(), nodes[2].Addr()))
}
