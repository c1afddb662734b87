package memory

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
)

// Messages count as the documentation of MaxBytes says.
func TestBytesOfAMessage(t *testing.T) {
	t.Parallel()
	headers := map[string]string{"k": "v", strings.Repeat("k", 200): strings.Repeat("v", 20_000)}
	lengths := len(headers["k"]) + 1 + 20_200
	for n := 0; n <= maxPageSize; n += 1 + n/50 {
		for _, h := range []map[string]string{nil, headers} {
			content, least, most := n+2, 3, 8
			if h != nil {
				content, least, most = content+lengths, least+2*len(h), most+6*len(h)
			}
			size := recordSize(record.PackID(nil, "id"), h, make([]byte, n))
			if size < content+least || size > content+most {
				t.Errorf("%d bytes take %d before rounding", content, size)
			}
			if cell := int(cellSize(size)); cell < size || cell > size+max(7, size/8) {
				t.Errorf("%d bytes are rounded up to %d", size, cell)
			}
		}
	}
}

// A message and its window fit exactly. A window that has ended is opened again in its old place,
// and needs no further room.
func TestWindowsCountForMaxBytes(t *testing.T) {
	const id = "an id of some length"
	packed := record.PackID(nil, id)
	size := int64(cellSize(recordSize(packed, nil, nil)) + cellSize(len(packed)))
	q, clock := open(t, MaxBytes(size))
	for range 3 {
		must(t, pushUnique(q, id, time.Minute))
		mustRefuse(t, q, "full")
		takeAndAck(t, q)
		clock.Advance(time.Minute)
	}
	q, _ = open(t, MaxBytes(size-1))
	if err := pushUnique(q, id, time.Minute); !errors.Is(err, backend.ErrFull) {
		t.Errorf("got %v", err)
	}
}

// mustRefuse wants a queue to be full, and a refused message to leave nothing.
func mustRefuse(t *testing.T, q *queue, id string) {
	t.Helper()
	messages, bytes := q.usage()
	if err := push(q, id, 0); !errors.Is(err, backend.ErrFull) {
		t.Errorf("pushing %s: %v", id, err)
	}
	if m, b := q.usage(); m != messages || b != bytes {
		t.Errorf("a refused message left %d messages, %d bytes; there were %d, %d", m, b, messages, bytes)
	}
	mustBeWhole(t, q.store)
}

// Windows that last fill a queue without a message. Those that have ended make room for a push,
// however many there are.
func TestEndedWindowsKeepNothingFull(t *testing.T) {
	q, clock := open(t, MaxBytes(40_000))
	n := 0
	for ; pushUnique(q, fmt.Sprint("id ", n), time.Minute) == nil; n++ {
		takeAndAck(t, q)
	}
	if messages, bytes := q.usage(); n < 100 || messages != 0 || bytes == 0 || bytes > 40_000 {
		t.Fatalf("%d windows: %d messages, %d bytes", n, messages, bytes)
	}
	clock.Advance(time.Minute)
	large := backend.Message{ID: "large", Body: make([]byte, 30_000)}
	must(t, one(q.Schedule(context.Background(), []backend.Message{large})))
	mustBeWhole(t, q.store)
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

// The memory of many leased messages is freed once they are acked, though one is left: all but the
// 4 MiB of their slots.
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
	if grown := heapInUse() - before; grown > 5<<20 {
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

// New headers that a queue has no room for are refused, and the message keeps its lease.
func TestNewHeadersCountForMaxBytes(t *testing.T) {
	q, _ := open(t, MaxBytes(1000))
	mustPush(t, q, "id", 0)
	d := mustTake(t, q, 1, time.Minute)[0]
	back := backend.Return{Lease: d.Lease(), NewHeaders: true, Headers: map[string]string{"k": strings.Repeat("x", 1000)}}
	if err := one(q.Nack(t.Context(), []backend.Return{back})); !errors.Is(err, backend.ErrFull) {
		t.Errorf("got %v, want ErrFull", err)
	}
	mustAll(t, q.Ack(t.Context(), []backend.Lease{d.Lease()}))
	mustBeEmpty(t, q.store)
}
