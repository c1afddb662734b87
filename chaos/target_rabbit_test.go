package chaos

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/judge"
	"github.com/delayq/delayq/internal/testenv"
)

// confirmsWithin is how long levels wait for confirms before they pass messages on again. By default
// that is 180 s.
const confirmsWithin = 3 * time.Second

func retriesSoon() testenv.RabbitOption {
	return testenv.RabbitAdvanced("dead_letter_worker_publisher_confirm_timeout", strconv.FormatInt(confirmsWithin.Milliseconds(), 10))
}

// rabbitRate suits a broker whose queues write each message to the disk up to seven times, beside
// everything else that runs here.
const rabbitRate = 300

func rabbitTarget(t *testing.T) *target {
	t.Helper()
	return onBroker(t, testenv.RabbitMQ(&softFailing{TB: t}, testenv.PrivateRabbit(), retriesSoon()))
}

// onBroker is a target on one broker, with proxies.
func onBroker(t *testing.T, s *testenv.RabbitServer) *target {
	t.Helper()
	p, toxic := testenv.Proxy(t, s.Addr()), newToxicProxy(t, s.Addr())
	v := onRabbit(t, []*testenv.RabbitServer{s}, rabbitAt(s.URL()), rabbitAt(withHost(t, s.URL(), p.Addr())), rabbitAt(withHost(t, s.URL(), toxic.Listen)))
	s.Sync()
	network := append(networkFaults(p, rabbitGreeting), toxicFaults(toxic, rabbitGreeting)...)
	for _, f := range network {
		f.window = forgetsAcks
	}
	v.faults = slices.Concat(network, rabbitFaults(s, s.URL()))
	return v
}

// restlessTarget is a broker without faults, with workers that come and go. There attempts count
// hand-outs alone.
func restlessTarget(t *testing.T) *target {
	t.Helper()
	s := testenv.RabbitMQ(&softFailing{TB: t}, testenv.PrivateRabbit())
	v := onRabbit(t, []*testenv.RabbitServer{s}, rabbitAt(s.URL()), rabbitAt(s.URL()), rabbitAt(s.URL()))
	v.name, v.oneProcess, v.harmless, v.poison = "rabbitmq-restless", true, true, 0
	return v
}

func rabbitAt(url string) Endpoint { return Endpoint{Backend: "rabbitmq", Addr: url} }

// onRabbit is a target on brokers with several endpoints, on each of which the clients of this
// process share two connections. It declares the queues.
func onRabbit(t *testing.T, nodes []*testenv.RabbitServer, at ...Endpoint) *target {
	t.Helper()
	v := &target{
		name: "rabbitmq", rate: rabbitRate, drainTime: 2 * time.Minute, direct: at[0], proxied: at[len(at)-1],
		poison: 1, // with two, a worker's death by one might count for the other
		locate: func() string { return locateInRabbit(vhostOf(at[0].Addr), nodes...) },
		mix: func(m *Mix) {
			m.Batches = []int{1, 10, 30, 50}
			m.Cancel, m.Reschedule = 0, 0 // it lacks both
		},
	}
	for _, e := range at {
		v.opens = append(v.opens, sharing(t, e.Open))
	}
	b, err := v.opens[0](t.Context())
	must(t, err)
	for _, name := range []string{queueName, secondQueue, poisonQueue} {
		testenv.WarmRabbit(t, func() (backend.Queue, error) { return b.Open(t.Context(), name, quiet) })
	}
	return v
}

// rabbitClusterTarget is a cluster of three brokers, whose addresses all clients know.
func rabbitClusterTarget(t *testing.T) *target {
	t.Helper()
	c := testenv.RabbitCluster(&softFailing{TB: t}, 3, retriesSoon(), testenv.RabbitConfig("cluster_partition_handling", "pause_minority"))
	nodes := c.Nodes()
	at := rabbitAt(nodes[0].URL())
	at.Cluster = []string{nodes[1].Addr(), nodes[2].Addr()}
	v := onRabbit(t, nodes, at)
	for _, n := range nodes {
		n.Sync()
	}
	v.name, v.rate, v.drainTime, v.ownFaults = "rabbitmq, three nodes", 150, 3*time.Minute, true
	v.faults = []*fault{
		brokerKilled("node kill -9", func(i *injection) *testenv.RabbitServer { return pick(i.rng, nodes) }, func(i *injection) {
			time.Sleep(time.Duration(i.rng.IntN(1000)) * time.Millisecond) // the node is down for this long
			try(i.T, func() { c.Restart(); c.AwaitOK() })
		}),
		partition(c),
	}
	v.faults[0].resends = confirmsWithin - time.Second
	v.lastFault = func(t *testing.T) judge.Window { return leadersMoved(t, nodes[0]) }
	return v
}

// partition gives one node another cookie for the others, so that both sides refuse to connect. The
// node alone pauses, as configured, and comes back by itself.
func partition(c *testenv.RabbitNodes) *fault {
	return lasting("partition", 1, 2*time.Second, forgetsAcks, func(i *injection) func() int {
		node, alone := pick(i.rng, c.Nodes()), false
		try(i.T, func() {
			node.Ctl("eval", `Others = nodes(), application:set_env(kernel, chaos_cookie, erlang:get_cookie()), application:set_env(kernel, chaos_others, Others),
				[begin erlang:set_cookie(N, other), erlang:disconnect_node(N) end || N <- Others].`)
		})
		try(i.T, func() { alone = strings.TrimSpace(node.Ctl("eval", "length(nodes()).")) == "0" })
		return func() int {
			try(i.T, func() {
				node.Ctl("eval", `{ok, Others} = application:get_env(kernel, chaos_others), {ok, Cookie} = application:get_env(kernel, chaos_cookie),
					[begin erlang:set_cookie(N, Cookie), net_kernel:connect_node(N) end || N <- Others].`)
			})
			try(i.T, c.AwaitOK)
			return count(alone)
		}
	}).alone()
}

// leadersMoved makes other nodes lead the queues at the end, as docs/rabbitmq.md tells operators of
// RabbitMQ before 4.3 after the loss of a node: a leader may have forgotten to watch subscribers
// that are gone. Otherwise the messages of such a subscriber never come back, and the run does not
// drain. It breaks as much as any election.
func leadersMoved(t *testing.T, node *testenv.RabbitServer) judge.Window {
	t.Helper()
	w := forgetsAcks
	w.Kind, w.Start = "leaders moved", time.Now().UnixNano()
	try(t, func() {
		var major, minor int
		version := node.Ctl("eval", "rabbit_misc:version().")
		if _, err := fmt.Sscanf(strings.Trim(version, `"`), "%d.%d", &major, &minor); err != nil {
			t.Fatalf("a broker of version %q: %v", version, err)
		}
		if major < 4 || major == 4 && minor < 3 {
			w.Effect = strings.Count(node.Ctl("eval", moveLeaders), "migrated")
		}
	})
	w.End = time.Now().UnixNano()
	return w
}

// moveLeaders makes another node lead each queue of a user, and each queue of dead letters.
const moveLeaders = `[rabbit_quorum_queue:transfer_leadership(Q, hd([N || N <- [node() | nodes()], N =/= element(2, amqqueue:get_pid(Q))]))
	|| Q <- rabbit_amqqueue:list(), amqqueue:is_quorum(Q), {_, _, _, Name} <- [amqqueue:get_name(Q)], re:run(Name, "[.](q|dead)[.]") =/= nomatch].`
