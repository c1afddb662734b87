package rabbitmq

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/delayq/delayq/internal/testenv"
)

// TestFarMessageIsGivenBackAgain has a message come an hour early, and the handle fail to give it
// back. The handle does so later.
func TestFarMessageIsGivenBackAgain(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	const bucket = 2 * time.Hour
	q := openNew(ctx, t, testenv.SharedRabbitMQ(t).URL(), Namespace("far"), Buckets(bucket))
	far := q.scheduled(&record{id: "far", due: time.Now().Add(time.Hour)}, time.Now())
	far.route, far.due = immediate(q.names, q.name), time.Time{} // without a due time it keeps its route on a busy machine
	if err := errors.Join(q.b.pub.publish(ctx, []outgoing{far})...); err != nil {
		t.Fatal(err)
	}
	s, err := testenv.RetryOnBusyRabbit(ctx, func() (*session, error) { return q.sub.session(ctx) })
	if err != nil {
		t.Fatal(err)
	}
	waiting := func() int {
		n, err := length(s.conn.Connection, q.names.bucket(bucket.Milliseconds()))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := waiting()
	pub := q.b.pub.channels[ordinary]
	for range cap(pub.slots) { // until the copy may no longer be sent
		pub.slots <- struct{}{}
	}
	receiving, stop := context.WithCancel(ctx)
	defer stop()
	go func() { _, _ = q.Receive(receiving, 1, time.Minute) }()
	for copying := false; !copying; {
		if err := q.loop.do(ctx, func() { copying = q.loop.inProgress > 0 }); err != nil {
			t.Fatal(err)
		}
		sleep(ctx, time.Millisecond)
	}
	<-time.After(sendBackWithin + 10*time.Millisecond)
	for range cap(pub.slots) {
		<-pub.slots
	}
	for waiting() == before {
		if sleep(ctx, 10*time.Millisecond); ctx.Err() != nil {
			t.Fatal("the message does not wait in the broker")
		}
	}
}
