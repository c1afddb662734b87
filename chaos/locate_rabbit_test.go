package chaos

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
)

// locateInRabbit reports where messages are, for a run that does not drain: the queues, the unacked
// deliveries of channels, and the unconfirmed messages in the levels of each node.
func locateInRabbit(vhost string, nodes ...*testenv.RabbitServer) string {
	var b strings.Builder
	// ask writes the output of the first node that replies.
	ask := func(nodes []*testenv.RabbitServer, what string, args ...string) {
		for _, node := range nodes {
			var out string
			if failure := attempt(func() { out = node.Ctl(args...) }); failure != "" {
				fmt.Fprintf(&b, "%s: no reply of %s: %.300s\n", what, node.Addr(), failure)
				continue
			}
			fmt.Fprintf(&b, "%s:\n", what)
			for line := range strings.Lines(out + "\n") {
				if !strings.Contains(line, "\t0\t0\t0\t") { // an empty queue
					b.WriteString("  " + line)
				}
			}
			return
		}
	}
	ask(nodes, "queues with messages", "list_queues", "-t", "20", "-p", vhost, "name", "messages_ready", "messages_unacknowledged", "messages",
		"consumers", "leader", "online", "state")
	ask(nodes, "subscriptions", "list_consumers", "-p", vhost)
	ask(nodes, "channels", "list_channels", "-t", "20", "pid", "connection", "consumer_count", "messages_unacknowledged", "messages_unconfirmed", "acks_uncommitted")
	ask(nodes, "connections", "list_connections", "-t", "20", "pid", "peer_port", "port", "state", "channels")
	ask(nodes, "inside of queues", "eval", insideQueues)
	for i, node := range nodes {
		ask(nodes[i:i+1], "unconfirmed in levels, on "+node.Addr(), "eval", unconfirmedInLevels)
	}
	return b.String()
}

// unconfirmedInLevels asks a node for the dead-lettering workers of its queues that wait for the
// next queue to confirm messages, or do not reply.
const unconfirmedInLevels = `[S || {_, W, _, _} <- supervisor:which_children(rabbit_fifo_dlx_sup), is_pid(W),
	S <- [try {status, _, _, [_, _, _, _, Status]} = sys:get_status(W, 1000), [State] = [M || {data, [{"State", M}]} <- Status], State
		catch C:R -> {W, C, R} end],
	not (is_map(S) andalso maps:get(pendings, S) =:= #{})].`

// insideQueues asks the leaders of quorum queues for their messages, the consumers that hold some,
// and the workers that dead-letter them, each with whether its process lives: dead ones settle and
// pass on nothing. Queues without messages are left out.
const insideQueues = `Count = fun(S) -> maps:filter(fun(_, V) -> is_number(V) andalso V > 0 end, rabbit_fifo:overview(S)) end,
	Hands = fun(S) -> [{T, P, element(3, C), map_size(element(5, C))} || M <- tuple_to_list(S), is_map(M), {{T, P}, C} <- maps:to_list(M),
		is_tuple(C), element(1, C) =:= consumer, is_map(element(5, C)), map_size(element(5, C)) > 0] end,
	Worker = fun(S) -> [{worker, element(2, C)} || E <- tuple_to_list(S), is_tuple(E), tuple_size(E) > 1, element(1, E) =:= rabbit_fifo_dlx,
		C <- [element(2, E)], is_tuple(C)] end,
	Lives = fun(P) -> catch rpc:call(node(P), erlang, is_process_alive, [P], 1000) end,
	[{Name, Found} || Q <- rabbit_amqqueue:list(), amqqueue:is_quorum(Q),
		{_, _, _, Name} <- [amqqueue:get_name(Q)],
		Found <- [case ra:leader_query(amqqueue:get_pid(Q), fun(S) -> {Count(S), Hands(S), Worker(S)} end, 2000) of
			{ok, {_, {Counts, Hs, Ws}}, Leader} ->
				{Leader, Counts, [{T, P, St, N, {lives, Lives(P)}} || {T, P, St, N} <- Hs], [{worker, P, {lives, Lives(P)}} || {worker, P} <- Ws]};
			Other -> {Other, #{num_messages => unknown}} end],
		lists:any(fun(K) -> is_map_key(K, element(2, Found)) end, [num_messages, num_discarded, num_discard_checked_out])].`

// TestLocateInRabbit has one message scheduled and one in flight, and looks for both.
func TestLocateInRabbit(t *testing.T) {
	s := testenv.RabbitMQ(&softFailing{TB: t}, testenv.PrivateRabbit())
	b, err := rabbitAt(s.URL()).Open(t.Context())
	must(t, err)
	defer func() { _ = b.Close() }()
	q, err := b.Open(t.Context(), queueName, quiet)
	must(t, err)
	for _, err := range q.Schedule(t.Context(), []backend.Message{{ID: "scheduled", Delay: 0x30000000 * time.Millisecond}, {ID: "in flight"}}) {
		must(t, err)
	}
	_, err = q.Receive(t.Context(), 1, time.Minute)
	must(t, err)
	found := locateInRabbit("/", s)
	for _, part := range []string{
		"delayq.v1.w6.3", "num_ready_messages => 1", "{worker,<", "delayq.v1.q.chaos", "num_checked_out => 1", "cancelled,1,{lives,true}", "\t0\t1\t0\t0\n",
		"unconfirmed in levels, on " + s.Addr() + ":\n  []",
	} {
		if !strings.Contains(found, part) {
			t.Errorf("%q is missing in:\n%s", part, found)
		}
	}
	if strings.Contains(found, "no reply") || strings.Contains(found, "w5.") {
		t.Errorf("too little, or too much:\n%s", found)
	}
}
