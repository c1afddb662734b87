package keyspace_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/keyspace"
)

// byClients are the commands that clients send and scripts do not.
var byClients = []string{"evalsha", "eval", "script", "ping", "config", "subscribe", "cluster", "get", "hello", "client"}

func TestIdleQueuesCostLittle(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	for _, tt := range []struct{ queues, perSecond int }{{1, 1}, {1000, 100}} {
		t.Run(fmt.Sprint(tt.queues), func(t *testing.T) { t.Parallel(); idle(t, tt.queues, tt.perSecond) })
	}
}

// idle counts for longer than the longest sleep of a queue.
func idle(t *testing.T, queues, perSecond int) {
	client := server(t).Client(t)
	b := newBackend(t, client)
	for i := range queues {
		sleepIn(t, open(t, b, numbered("q", i)))
	}
	time.Sleep(2 * time.Second) // subscriptions make all look
	before, begun := sent(t, client, byClients...), time.Now()
	time.Sleep(15 * time.Second)
	got, took := sent(t, client, byClients...)-before, time.Since(begun)
	t.Logf("%d idle queues: %d commands in %v", queues, got, took)
	if allowed := perSecond * (int(took.Seconds()) + 1); got > allowed {
		t.Errorf("%d idle queues sent %d commands in %v; allowed are %d", queues, got, took, allowed)
	}
	if got == 0 {
		t.Error("no queue claims")
	}
}

func TestManyQueuesShareOneSubscription(t *testing.T) {
	t.Parallel()
	client := server(t).Client(t)
	b := newBackend(t, client, keyspace.Sweep(time.Minute))
	for i := range 50 {
		sleepIn(t, open(t, b, numbered("q", i)))
	}
	time.Sleep(300 * time.Millisecond)
	clients, err := client.Do(t.Context(), "client", "list", "type", "pubsub").Text()
	must(t, err)
	if n := lines(clients); n != 2 {
		t.Errorf("%d subscribed connections, want one for pushes and one for expiries:\n%s", n, clients)
	}
	channels, err := client.PubSubNumSub(t.Context(), "__keyevent@0__:expired").Result()
	must(t, err)
	if n := channels["__keyevent@0__:expired"]; n != 1 {
		t.Errorf("%d subscriptions to expiries", n)
	}
}
