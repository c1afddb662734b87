package zsetpoll_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/zsetpoll"
)

// TestWorkerKilled kills a process that holds messages: they come back when the leases end, not
// before.
func TestWorkerKilled(t *testing.T) {
	eachMode(t, func(t *testing.T, mode zsetpoll.Mode) {
		const n, lease = 20, 2 * time.Second
		ctx := deadline(t, 60*time.Second)
		server := testenv.SharedRedis(t)
		client := server.Client(t)
		q := open(t, client, zsetpoll.Claims(mode))
		for i := range n {
			must(t, q.Schedule(ctx, message(fmt.Sprint(i), 0))...)
		}
		until := killWhoHolds(t, n, lease, server.URL(), mode)
		for got := 0; got < n; {
			ds, err := q.Receive(ctx, n, time.Minute)
			must(t, err)
			for _, d := range ds {
				checkReturned(t, d, until[d.ID])
			}
			must(t, q.Ack(ctx, leases(ds))...)
			got += len(ds)
		}
		drained(ctx, t, q, client)
	})
}

func checkReturned(t *testing.T, d backend.Delivery, until time.Time) {
	t.Helper()
	claimed := d.Until.Add(-time.Minute)
	if d.Attempt != 2 || until.IsZero() || claimed.Before(until) || claimed.After(until.Add(5*time.Second)) {
		t.Errorf("%s came back at %v as attempt %d; the lease ended at %v", d.ID, claimed, d.Attempt, until)
	}
}

// killWhoHolds kills a worker process once it holds n messages; it returns when their leases end.
func killWhoHolds(t *testing.T, n int, lease time.Duration, url string, mode zsetpoll.Mode) map[string]time.Time {
	t.Helper()
	worker := exec.CommandContext(t.Context(), os.Args[0])
	worker.Stderr = os.Stderr
	worker.Env = append(os.Environ(), helperURL+"="+url, helperQueue+"="+t.Name(),
		fmt.Sprintf("%s=%d", helperMode, mode), helperLease+"="+lease.String())
	out, err := worker.StdoutPipe()
	must(t, err, worker.Start())
	until := make(map[string]time.Time)
	for lines := bufio.NewScanner(out); len(until) < n && lines.Scan(); {
		var id string
		var attempt int
		var ms int64
		if _, err := fmt.Sscan(lines.Text(), &id, &attempt, &ms); err != nil || attempt != 1 {
			t.Fatalf("the worker says %q", lines.Text())
		}
		until[id] = time.UnixMilli(ms)
	}
	must(t, worker.Process.Kill())
	_ = worker.Wait() // it was killed
	if len(until) != n {
		t.Fatalf("the worker held %d messages, want %d", len(until), n)
	}
	return until
}
