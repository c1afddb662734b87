package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/chaos"
	"github.com/delayq/delayq/internal/judge"
	"github.com/delayq/delayq/internal/testenv"
)

// rabbitsVenue is a cluster of three brokers, of which clients know all.
func rabbitsVenue(t *testing.T) *venue {
	t.Helper()
	c := testenv.RabbitCluster(&soft{TB: t}, 3, triesSoon(), testenv.RabbitConfig("cluster_partition_handling", "pause_minority"))
	nodes := c.Nodes()
	var hosts []string
	for _, n := range nodes[1:] {
		hosts = append(hosts, n.Addr())
	}
	v := rabbitAt(t, nodes[0].URL(), nodes[0].URL())
	for _, n := range nodes {
		n.Sync()
	}
	at := chaos.Endpoint{Backend: "rabbitmq", Addr: nodes[0].URL(), Cluster: hosts}
	v.name, v.rate, v.straight, v.bent = "rabbitmq, three nodes", 150, at, at
	v.patient, v.bare = 3*time.Minute, true
	v.opens = []chaos.OpenFunc{sharing(t, at.Open)}
	v.where = whereInRabbits(mustURI(at.Addr).Vhost, nodes...)
	v.faults = []*fault{brokerOfThreeKilled(c), partition(c)}
	v.settle = func(t *testing.T) judge.Window { return leadersMoved(t, c) }
	return v
}

// brokerOfThreeKilled kills a node and starts it again.
func brokerOfThreeKilled(c *testenv.RabbitNodes) *fault {
	up := true
	return &fault{
		Kind: chaos.Kind{Name: "node kill -9", Weight: 1, Alone: true}, window: judge.Window{Breaks: true, Undo: lastAcks},
		on: func(t *testing.T, dice *rand.Rand) {
			node := c.Nodes()[dice.IntN(3)]
			node.Kill()
			_, up = rabbitGreeting.answer(node.Addr(), deaf)
			time.Sleep(time.Duration(dice.IntN(1000)) * time.Millisecond) // for how long it is gone
			try(t, func() { c.Restart(); c.AwaitOK() })
		},
		off: func(*testing.T) int { return count(!up) },
	}
}

// partition has one node refuse the others, and be refused, by another cookie for them. The node alone pauses, as it is told to, and comes
// back by itself.
func partition(c *testenv.RabbitNodes) *fault {
	var node *testenv.RabbitServer
	parted := false
	return &fault{
		Kind: chaos.Kind{Name: "partition", Weight: 1, For: 2 * time.Second, Alone: true}, window: judge.Window{Breaks: true, Undo: lastAcks},
		on: func(t *testing.T, dice *rand.Rand) {
			node = c.Nodes()[dice.IntN(3)]
			try(t, func() {
				node.Ctl("eval", `Others = nodes(), application:set_env(kernel, chaos_cookie, erlang:get_cookie()), application:set_env(kernel, chaos_others, Others),
					[begin erlang:set_cookie(N, other), erlang:disconnect_node(N) end || N <- Others].`)
			})
			try(t, func() {
				parted = strings.TrimSpace(node.Ctl("eval", "length(nodes()).")) == "0"
			})
		},
		off: func(t *testing.T) int {
			try(t, func() {
				node.Ctl("eval", `{ok, Others} = application:get_env(kernel, chaos_others), {ok, Cookie} = application:get_env(kernel, chaos_cookie),
					[begin erlang:set_cookie(N, Cookie), net_kernel:connect_node(N) end || N <- Others].`)
			})
			try(t, c.AwaitOK)
			return count(parted)
		},
	}
}

// leadersMoved does at the end what docs/rabbitmq.md tells operators of RabbitMQ before 4.3 to do when a node was lost: it has other nodes lead the
// queues, since their leaders may have forgotten to look after subscribers that are gone. Without it, what such a subscriber had in hand does not come
// again, and this run does not drain. It breaks what it breaks, as any election does.
func leadersMoved(t *testing.T, c *testenv.RabbitNodes) judge.Window {
	t.Helper()
	w := judge.Window{Kind: "leaders moved", Start: time.Now().UnixNano(), Breaks: true, Undo: lastAcks}
	node := c.Nodes()[0]
	try(t, func() {
		if looksAfterAll(t, node.Ctl("eval", "rabbit_misc:version().")) {
			return
		}
		moved := node.Ctl("eval", moveLeaders)
		w.Effect = strings.Count(moved, "migrated")
	})
	w.End = time.Now().UnixNano()
	return w
}

// moveLeaders has another node lead each queue of a user, and that of its dead letters.
const moveLeaders = `[rabbit_quorum_queue:transfer_leadership(Q, hd([N || N <- [node() | nodes()], N =/= element(2, amqqueue:get_pid(Q))]))
	|| Q <- rabbit_amqqueue:list(), amqqueue:is_quorum(Q), {_, _, _, Name} <- [amqqueue:get_name(Q)], re:run(Name, "[.](q|dead)[.]") =/= nomatch].`

// looksAfterAll tells by a broker's version whether its queues look after subscribers that have ended their subscription and have messages in hand.
func looksAfterAll(t *testing.T, version string) bool {
	t.Helper()
	var major, minor int
	if _, err := fmt.Sscanf(strings.Trim(version, `"`), "%d.%d", &major, &minor); err != nil {
		t.Fatalf("a broker of version %q: %v", version, err)
	}
	return major > 4 || major == 4 && minor >= 3
}
