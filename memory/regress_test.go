package memory

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
)

// Windows that have ended make room for a push, however many there are.
func TestEndedWindowsKeepNothingFull(t *testing.T) {
	q, clock := open(t, MaxBytes(40_000))
	n := 0
	for ; pushUnique(q, fmt.Sprint("id ", n), time.Minute) == nil; n++ {
		takeAndAck(t, q)
	}
	if n < 100 {
		t.Fatalf("only %d windows fit", n)
	}
	clock.Advance(time.Minute)
	large := backend.Message{ID: "large", Body: make([]byte, 30_000)}
	must(t, one(q.Schedule(context.Background(), []backend.Message{large})))
	mustBeWhole(t, q.store)
}

// A push with UniqueFor needs room for its window too.
func TestWindowsCountForMaxBytes(t *testing.T) {
	for _, fits := range []bool{false, true} {
		id := "an id of some length"
		size := int64(cellSize(recordSize(record.PackID(nil, id), nil, nil)) + cellSize(len(record.PackID(nil, id))))
		if !fits {
			size--
		}
		q, _ := open(t, MaxBytes(size))
		if err := pushUnique(q, id, time.Minute); (err == nil) != fits {
			t.Errorf("a message and its window fit into MaxBytes: %t; got %v", fits, err)
		}
		if _, bytes := q.usage(); bytes > size {
			t.Errorf("%d bytes are used of %d", bytes, size)
		}
	}
}

// A window that has ended is opened again in its old place, and needs no further room.
func TestWindowOpensAgainWhereItWas(t *testing.T) {
	id := "an id of some length"
	size := int64(cellSize(recordSize(record.PackID(nil, id), nil, nil)) + cellSize(len(record.PackID(nil, id))))
	q, clock := open(t, MaxBytes(size))
	for range 3 {
		must(t, pushUnique(q, id, time.Minute))
		takeAndAck(t, q)
		clock.Advance(time.Minute)
	}
}

// The memory of many leased messages is freed once they are acked, though one is left.
func TestLeasesAreGivenBack(t *testing.T) {
	const n = 200_000
	q, _ := open(t)
	before := heapInUse()
	mustPush(t, q, "first", 0)
	first := mustTake(t, q, 1, time.Hour)
	for i := range n {
		mustPush(t, q, fmt.Sprint(i), 0)
	}
	mustAll(t, q.Ack(context.Background(), leasesOf(mustTake(t, q, n, time.Hour))))
	if grown := heapInUse() - before; grown > 4<<20 {
		t.Errorf("%d bytes are left of %d messages in flight", grown, n)
	}
	mustBeWhole(t, q.store)
	mustAll(t, q.Ack(context.Background(), leasesOf(first)))
	mustBeEmpty(t, q.store)
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A URL names one queue in the whole process, also for a test that has a time of its own.
func TestURLInRealTimeThenInABubble(t *testing.T) {
	b, name, err := backend.DefaultMux().Open(t.Context(), "memory://bubble/q")
	must(t, err)
	wait := func(d time.Duration) {
		q, err := b.Open(context.Background(), name, backend.Options{})
		must(t, err)
		defer func() { _ = q.Close() }()
		must(t, push(q.(*queue), "a", d))
		ctx, cancel := context.WithTimeout(context.Background(), 100*d)
		defer cancel()
		ds, err := q.Receive(ctx, 1, time.Second)
		must(t, err)
		mustAll(t, q.Ack(ctx, leasesOf(ds)))
	}
	for range 2 {
		wait(time.Millisecond)
		synctest.Test(t, func(*testing.T) { wait(time.Hour) })
	}
}

// The messages of a URL outlive the Close of a backend, and the backend's handles do not.
func TestCloseOfAURL(t *testing.T) {
	first, name, err := backend.DefaultMux().Open(t.Context(), "memory://closed/q")
	must(t, err)
	second, _, err := backend.DefaultMux().Open(t.Context(), "memory://closed/q")
	must(t, err)
	one, err := first.Open(t.Context(), name, backend.Options{})
	must(t, err)
	two, err := second.Open(t.Context(), name, backend.Options{})
	must(t, err)
	got := receive(t.Context(), t, one.(*queue))
	must(t, first.Close())
	must(t, first.Close())
	if r := mustReturn(t, got); !errors.Is(r.err, backend.ErrClosed) {
		t.Errorf("a waiting Receive returns %v", r.err)
	}
	if _, err := first.Open(t.Context(), name, backend.Options{}); !errors.Is(err, backend.ErrClosed) {
		t.Errorf("Open after Close: %v", err)
	}
	mustPush(t, two.(*queue), "a", 0)
	mustAll(t, two.Ack(t.Context(), leasesOf(mustTake(t, two.(*queue), 1, time.Minute))))
	must(t, second.Close())
}
