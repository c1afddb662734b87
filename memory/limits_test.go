package memory

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
)

func TestMaxMessages(t *testing.T) {
	q, _ := open(t, MaxMessages(3))
	testFull(t, q, "small")
}

func TestMaxBytes(t *testing.T) {
	q, _ := open(t, MaxBytes(3*500))
	testFull(t, q, strings.Repeat("large", 50)[:245])
}

// testFull fills a queue that has room for three and makes room in each way there is.
func testFull(t *testing.T, q *queue, prefix string) {
	ctx := context.Background()
	store := func(id string) error {
		return one(q.Schedule(ctx, []backend.Message{{ID: prefix + id, Body: make([]byte, 200)}}))
	}
	refuse := func(what string) {
		t.Helper()
		before, bytes := q.usage()
		if err := store("refused"); !errors.Is(err, backend.ErrFull) {
			t.Errorf("%s: %v", what, err)
		}
		if after, now := q.usage(); after != before || now != bytes {
			t.Errorf("%s: a rejected message left %d messages, %d bytes; there were %d, %d", what, after, now, before, bytes)
		}
		if err := one(q.Cancel(ctx, []string{prefix + "refused"})); !errors.Is(err, backend.ErrNotFound) {
			t.Errorf("%s: a rejected message is there: %v", what, err)
		}
		mustBeWhole(t, q.store)
	}
	for _, id := range []string{"a", "b", "c"} {
		must(t, store(id))
	}
	refuse("full")
	if err := store("a"); !errors.Is(err, backend.ErrDuplicate) {
		t.Errorf("a duplicate in a full queue: %v", err)
	}
	d := mustTake(t, q, 3, time.Minute)
	refuse("full of messages in flight")
	mustAll(t, q.Ack(ctx, leasesOf(d[:1])))
	must(t, store("d"))
	refuse("full again after an ack")
	mustAll(t, q.Dead(ctx, []backend.DeadLetterRequest{{Lease: d[1].Lease()}}))
	refuse("full with a dead letter")
	mustAll(t, q.DeleteDead(ctx, []string{d[1].ID}))
	must(t, store("e"))
	mustAll(t, q.Cancel(ctx, []string{prefix + "d"}))
	must(t, store("f"))
	refuse("full again after a cancel")
}

// Of a batch as much is stored as there is room for.
func TestFullInTheMiddleOfABatch(t *testing.T) {
	q, _ := open(t, MaxMessages(2))
	errs := q.Schedule(context.Background(), []backend.Message{{ID: "a"}, {ID: "a"}, {ID: "b"}, {ID: "c"}})
	want := []error{nil, backend.ErrDuplicate, nil, backend.ErrFull}
	for i := range want {
		if !errors.Is(errs[i], want[i]) {
			t.Errorf("message %d: %v, want %v", i, errs[i], want[i])
		}
	}
}

func TestUsageCountsAllQueues(t *testing.T) {
	b := New()
	for _, name := range []string{"one", "two"} {
		q, err := b.Open(context.Background(), name, backend.Options{})
		must(t, err)
		mustPush(t, q.(*queue), "id", time.Hour)
	}
	if messages, bytes := b.Usage(); messages != 2 || bytes < 2*int64(len("id")+len("body of id")) {
		t.Errorf("%d messages, %d bytes", messages, bytes)
	}
	must(t, b.Close())
	if messages, bytes := b.Usage(); messages != 0 || bytes != 0 {
		t.Errorf("closed: %d messages, %d bytes", messages, bytes)
	}
}
