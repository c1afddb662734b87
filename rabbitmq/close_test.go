package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/rabbitmq"
)

// TestCloseUnderPushes closes a backend under pushes, receives and acks. Every call ends, with a
// reason.
func TestCloseUnderPushes(t *testing.T) {
	t.Parallel()
	url, far := vhost(t), rabbitmq.Buckets(time.Hour)
	for range 5 {
		b := rabbitmq.New(url, far)
		q := openOn(t, b, queueOf(t))
		var calls sync.WaitGroup
		for i := range 8 {
			calls.Go(func() { pushUntilClosed(t, q, fmt.Sprint(i)) })
			calls.Go(func() { takeUntilClosed(t, q) })
		}
		time.Sleep(30 * time.Millisecond) // without calls in progress the test checks less
		must(t, b.Close())
		calls.Wait()
	}
}

func pushUntilClosed(t *testing.T, q backend.Queue, id string) {
	ctx := deadline(t, patience)
	for {
		err := errors.Join(q.Schedule(ctx, batch(id, 500, time.Hour))...)
		if errors.Is(err, backend.ErrClosed) {
			return
		}
		if ctx.Err() != nil {
			t.Errorf("pushing went on: %v", err)
			return
		}
	}
}

func takeUntilClosed(t *testing.T, q backend.Queue) {
	ctx := deadline(t, patience)
	for {
		ds, err := q.Receive(ctx, 3, time.Minute)
		if errors.Is(err, backend.ErrClosed) {
			return
		}
		if err != nil {
			t.Errorf("taking: %v", err)
			return
		}
		_ = q.Ack(ctx, leases(ds)) // it may run during Close
	}
}

// TestCloseWhileGivingBack closes handles while they give back messages that no Receive took. No
// message is duplicated.
func TestCloseWhileGivingBack(t *testing.T) {
	t.Parallel()
	const n = 50
	ctx := deadline(t, patience)
	url := shared(t)
	b := newBackend(t, url)
	pusher, ch := openOn(t, b, queueOf(t)), channel(t, url)
	for i := range n {
		must(t, pusher.Schedule(ctx, message(fmt.Sprint(i), 0))...)
	}
	await(t, "all messages", func() bool { return ready(t, ch, ownQueue(t)) == n })
	for i := range 40 {
		q := openOn(t, b, queueOf(t))
		ds, err := q.Receive(ctx, 40, time.Minute)
		must(t, err)
		for _, d := range ds {
			must(t, q.Nack(ctx, []backend.Return{{Lease: d.Lease(), Untouched: true}})...)
		}
		time.Sleep(45*time.Millisecond + time.Duration(i)*300*time.Microsecond)
		must(t, q.Close())
	}
	wantEachOnce(ctx, t, pusher, n)
}

// wantEachOnce takes n messages, and wants them to be different ones, and no more.
func wantEachOnce(ctx context.Context, t *testing.T, q backend.Queue, n int) {
	t.Helper()
	got := make(map[string]int)
	takeAll(ctx, t, q, n, func(d backend.Delivery) { got[d.ID]++ })
	wantNoMessage(t, q, 300*time.Millisecond)
	for id, times := range got {
		if times > 1 {
			t.Errorf("message %s came %d times", id, times)
		}
	}
}

// TestCloseWhileTheBrokerStalls closes handles while they give back messages that no Receive took.
// The broker says nothing for a while, as on a busy machine. No message is duplicated.
func TestCloseWhileTheBrokerStalls(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	const n = 20
	url := shared(t)
	for replies := range 8 { // before the stall, so that it comes at different times
		t.Run(fmt.Sprint(replies), func(t *testing.T) {
			t.Parallel()
			ctx := deadline(t, patience)
			slow, proxy := behindProxy(t, url)
			q, other := open(t, slow), open(t, url)
			must(t, q.Schedule(ctx, batch("m", n, 0))...)
			for _, d := range receiveAll(ctx, t, q, n) {
				must(t, q.Nack(ctx, []backend.Return{{Lease: d.Lease(), Untouched: true}})...)
			}
			proxy.StallAfter(replies)
			time.AfterFunc(8*time.Second, proxy.Resume) // less than two heartbeats, more than most stalls
			must(t, q.Close())
			wantEachOnce(ctx, t, other, n)
		})
	}
}

// TestCloseAfterAcks closes a handle right after many acks. No acknowledged message comes again.
func TestCloseAfterAcks(t *testing.T) {
	t.Parallel()
	const n = 500
	ctx := deadline(t, patience)
	b := newBackend(t, shared(t))
	other := openOn(t, b, queueOf(t))
	for round := range 5 {
		must(t, other.Schedule(ctx, batch(fmt.Sprint(round), n, 0))...)
		q := openOn(t, b, queueOf(t))
		takeAll(ctx, t, q, n, func(backend.Delivery) {})
		must(t, q.Close())
		wantNoMessage(t, other, 200*time.Millisecond)
	}
}

// TestCloseAfterAcksOutOfOrder acknowledges every other message and closes. So no ack covers the
// messages before it. The broker's channel holds back such acks, and must have none when it closes.
func TestCloseAfterAcksOutOfOrder(t *testing.T) {
	t.Parallel()
	const n, rounds = 400, 10
	ctx := deadline(t, patience)
	b := newBackend(t, shared(t))
	other := openOn(t, b, queueOf(t))
	done := make(map[string]bool)
	for round := range rounds {
		must(t, other.Schedule(ctx, batch(fmt.Sprint(round), n, 0))...)
		q := openOn(t, b, queueOf(t))
		held := receiveAll(ctx, t, q, n)
		var ls []backend.Lease
		for i := 1; i < n; i += 2 {
			ls = append(ls, held[i].Lease())
			done[held[i].ID] = true
		}
		must(t, q.Ack(ctx, ls)...)
		must(t, q.Close())
		takeAll(ctx, t, other, n/2, func(d backend.Delivery) {
			if done[d.ID] {
				t.Fatalf("round %d: message %s was acknowledged, and came again", round, d.ID)
			}
		})
	}
}

// TestOpenWhileClosing opens a queue while the backend closes. The handle, if there is one, is
// closed too.
func TestOpenWhileClosing(t *testing.T) {
	t.Parallel()
	ctx := deadline(t, patience)
	url := shared(t)
	for i := range 20 {
		b := rabbitmq.New(url, rabbitmq.Buckets(time.Second))
		if i%2 == 0 { // otherwise Open makes the connections during Close
			openOn(t, b, queueOf(t)+".first")
		}
		var all sync.WaitGroup
		all.Go(func() {
			q, err := b.Open(ctx, queueOf(t)+".second", quiet())
			if err == nil {
				_, err = q.Receive(ctx, 1, time.Minute)
			}
			if !errors.Is(err, backend.ErrClosed) {
				t.Errorf("%v, want ErrClosed", err)
			}
		})
		time.Sleep(rand.N(20 * time.Millisecond)) // any time will do
		must(t, b.Close())
		all.Wait()
	}
}

// TestSubscriptionEndedByTheBroker has the broker end a subscription. RabbitMQ 4.3 does so when it
// takes back a message that was held for too long. The handle has lost its leases.
func TestSubscriptionEndedByTheBroker(t *testing.T) {
	t.Parallel()
	server, vhost := sharedVhost(t)
	ctx := deadline(t, patience)
	url := server.VhostURL(vhost)
	q, ch := open(t, url, few), channel(t, url)
	type received struct {
		ds  []backend.Delivery
		err error
	}
	got := make(chan received, 2)
	for n := 1; n <= 2; n++ { // both wait before there is a message: the first subscription would end without them
		go func() {
			ds, err := q.Receive(ctx, 1, time.Minute)
			got <- received{ds, err}
		}()
		await(t, "a further subscription", func() bool { return subscriptions(t, ch) == n })
	}
	must(t, q.Schedule(ctx, message("held", 0))...)
	next := func(attempt int) []backend.Delivery {
		r := <-got
		must(t, r.err)
		if r.ds[0].ID != "held" || r.ds[0].Attempt != attempt {
			t.Fatalf("got %+v, want attempt %d", r.ds[0], attempt)
		}
		return r.ds
	}
	held := next(1)
	await(t, "two subscriptions, to end them", func() bool { // one has the message, the other waits
		return server.Eval(`case rabbit_amqqueue:consumers_all(<<"`+vhost+`">>) of
			[_, _] = Both -> [rabbit_channel:send_command(proplists:get_value(channel_pid, C), {'basic.cancel', proplists:get_value(consumer_tag, C), true}) || C <- Both];
			Fewer -> length(Fewer) end.`) == "[ok, ok]"
	})
	next(2)
	if err := q.Ack(ctx, leases(held))[0]; !errors.Is(err, backend.ErrLeaseLost) {
		t.Errorf("the ack of a message that another handle has: %v, want ErrLeaseLost", err)
	}
}
