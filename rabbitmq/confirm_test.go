package rabbitmq_test

import (
	"fmt"
	"testing"
)

// TestQueueThatConfirmsNothing stops the process of one queue, so that a message for it stays
// unconfirmed, as where a queue has lost its leader. Pushes to another queue of the backend go on, more of
// them than may be unconfirmed at a time.
func TestQueueThatConfirmsNothing(t *testing.T) {
	t.Parallel()
	server, vhost := sharedVhost(t)
	ctx := deadline(t, patience)
	b := newBackend(t, server.VhostURL(vhost), few)
	stuck, other := openOn(t, b, "stuck"), openOn(t, b, "other")
	tell := func(what string) { tellQueue(server, vhost, "delayq.v1.q.stuck", what) }
	must(t, stuck.Schedule(ctx, message("first", 0))...) // a channel's first one to a queue waits for its process
	tell("suspend")
	pushed := make(chan error, 1)
	go func() { pushed <- stuck.Schedule(ctx, message("a", 0))[0] }()
	await(t, "the message to be sent", func() bool {
		return server.Eval(fmt.Sprintf(`length([N || [{vhost, <<"%s">>}, {messages_unconfirmed, N}] <- rabbit_channel:info_all([vhost, messages_unconfirmed]), N > 0]).`, vhost)) == "1"
	})
	for i := range 10 {
		must(t, other.Schedule(ctx, batch(fmt.Sprint(i), 400, 0))...)
	}
	select {
	case err := <-pushed:
		t.Errorf("the push to a queue that confirms nothing returned %v", err)
	default:
	}
	tell("resume")
	must(t, <-pushed)
}
