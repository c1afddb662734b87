package memory

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
)

// TestEmptyStoresAreForgotten closes the last handle of each of many queues. Those that hold
// nothing leave no store behind.
func TestEmptyStoresAreForgotten(t *testing.T) {
	clock := clockwork.NewFakeClockAt(epoch)
	b := New()
	open := func(name string) *queue {
		q, err := b.Open(context.Background(), name, backend.Options{Clock: clock})
		must(t, err)
		return q.(*queue)
	}
	for i := range 100 {
		q := open(fmt.Sprint("empty", i))
		mustPush(t, q, "a", 0)
		mustAll(t, q.Ack(context.Background(), leasesOf(mustTake(t, q, 1, time.Minute))))
		must(t, q.Close())
	}
	first, second := open("twice"), open("twice")
	must(t, first.Close())
	mustPush(t, second, "a", time.Hour)
	must(t, second.Close())
	paused := open("paused")
	must(t, paused.PauseAll(context.Background(), backend.Pause{}))
	must(t, paused.Close())
	unique := open("unique")
	mustAll(t, unique.Schedule(context.Background(), []backend.Message{{ID: "a", UniqueFor: time.Hour}}))
	mustAll(t, unique.Ack(context.Background(), leasesOf(mustTake(t, unique, 1, time.Minute))))
	must(t, unique.Close())
	if len(b.stores) != 3 || b.stores["twice"] == nil || b.stores["paused"] == nil || b.stores["unique"] == nil {
		t.Errorf("%d stores are left: %v", len(b.stores), b.stores)
	}
	clock.Advance(2 * time.Hour)
	must(t, open("unique").Close())
	if b.stores["unique"] != nil {
		t.Error("the queue whose id is free again is left")
	}
}

// TestPushWhileTheLastHandleCloses pushes through a handle that closes. A push without an error is
// in the queue of the next handle.
func TestPushWhileTheLastHandleCloses(t *testing.T) {
	b, ctx := New(), context.Background()
	open := func() *queue {
		q, err := b.Open(ctx, "q", backend.Options{})
		must(t, err)
		return q.(*queue)
	}
	stored := 0
	for i := range 5000 {
		q, pushed := open(), make(chan error, 1)
		id := fmt.Sprint(i)
		go func() { pushed <- push(q, id, time.Hour) }()
		if i%2 == 0 {
			time.Sleep(time.Microsecond) // else Close is nearly always first
		}
		must(t, q.Close())
		if <-pushed != nil {
			continue
		}
		stored++
		next := open()
		mustAll(t, next.Cancel(ctx, []string{id}))
		must(t, next.Close())
	}
	t.Logf("%d of 5000 pushes came before Close", stored)
}
