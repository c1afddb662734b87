package keyspace_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/keyspace"
)

// Among very many keys with a time to live Redis notices expiries after minutes. The sweep is in
// time.
func TestLatenessAmongManyExpiringKeys(t *testing.T) {
	t.Parallel()
	client := server(t).Client(t)
	fill(t, client, 100_000)
	const sweep = 500 * time.Millisecond
	q := open(t, newBackend(t, client, keyspace.Sweep(sweep)))
	const n = 60
	ms := make([]backend.Message, n)
	begun := time.Now()
	for i := range ms {
		ms[i] = backend.Message{ID: numbered("m", i), Delay: time.Duration(i+1) * 50 * time.Millisecond}
	}
	must(t, q.Schedule(t.Context(), ms)...)
	var worst time.Duration
	for range n {
		d := take(t, q, redistest.Patience)
		late := time.Since(d.Due)
		if late < 0 {
			t.Errorf("message %s came %v early", d.ID, -late)
		}
		worst = max(worst, late)
	}
	t.Logf("%d messages over %v, the latest by %v", n, time.Since(begun), worst)
	if worst > sweep+noise {
		t.Errorf("a message came %v late; the sweep is %v", worst, sweep)
	}
}

func fill(t *testing.T, client redis.Cmdable, n int) {
	t.Helper()
	const batch = 10_000
	for i := 0; i < n; i += batch {
		_, err := client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
			for j := range batch {
				p.Set(t.Context(), fmt.Sprintf("cache:%d", i+j), "", 24*time.Hour)
			}
			return nil
		})
		must(t, err)
	}
}
