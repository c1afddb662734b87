package chaos_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/delayq/delayq/internal/testenv"
)

// whereInRabbits tells where messages are as brokers know it, for a run that does not drain: the queues, what the channels hold, and what the
// levels of each node have passed on that the next queue has not confirmed.
func whereInRabbits(vhost string, nodes ...*testenv.RabbitServer) func(*testing.T) string {
	return func(*testing.T) string {
		var b strings.Builder
		all := []string{"-t", "20", "-p", vhost}
		tellOf(&b, "queues with messages", withMessages, nodes, append([]string{"list_queues"},
			append(all, "name", "messages_ready", "messages_unacknowledged", "messages", "consumers", "leader", "online", "state")...)...)
		tellOf(&b, "subscriptions", nil, nodes, append([]string{"list_consumers"}, all[2:]...)...)
		tellOf(&b, "channels", nil, nodes, "list_channels", "-t", "20", "pid", "connection", "consumer_count", "messages_unacknowledged", "messages_unconfirmed", "acks_uncommitted")
		tellOf(&b, "connections", nil, nodes, "list_connections", "-t", "20", "pid", "peer_port", "port", "state", "channels")
		tellOf(&b, "inside of queues", nil, nodes, "eval", queuesInside)
		for _, node := range nodes {
			tellOf(&b, "levels that wait for the next queue, on "+node.Addr(), nil, []*testenv.RabbitServer{node}, "eval", levelsThatWait)
		}
		return b.String()
	}
}

// levelsThatWait asks a node for the workers of its queues that lead to others, where these have passed on what the next queue has not
// confirmed, or do not answer.
const levelsThatWait = `[S || {_, W, _, _} <- supervisor:which_children(rabbit_fifo_dlx_sup), is_pid(W),
	S <- [try {status, _, _, [_, _, _, _, Status]} = sys:get_status(W, 1000), [State] = [M || {data, [{"State", M}]} <- Status], State
		catch C:R -> {W, C, R} end],
	not (is_map(S) andalso maps:get(pendings, S) =:= #{})].`

// queuesInside asks the leaders of quorum queues what they hold, in whose hands that is, and who is to pass on what is to be passed on: those who are
// dead settle nothing and pass on nothing. Queues that hold nothing are left out.
const queuesInside = `Count = fun(S) -> maps:filter(fun(_, V) -> is_number(V) andalso V > 0 end, rabbit_fifo:overview(S)) end,
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

// tellOf adds what the first node says that answers.
func tellOf(b *strings.Builder, what string, pick func(line string) bool, nodes []*testenv.RabbitServer, args ...string) {
	for _, node := range nodes {
		var said string
		if failure := attempt(func() { said = node.Ctl(args...) }); failure != "" {
			fmt.Fprintf(b, "%s: %s does not tell: %.300s\n", what, node.Addr(), failure)
			continue
		}
		fmt.Fprintf(b, "%s:\n", what)
		for line := range strings.Lines(said + "\n") {
			if pick == nil || pick(line) {
				b.WriteString("  " + line)
			}
		}
		return
	}
}

// withMessages picks the heading, and queues that are not known to be empty.
func withMessages(line string) bool { return !strings.Contains(line, "\t0\t0\t0\t") }
