package keyspace_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/keyspace"
)

func TestClusterMastersEachPublishExpiries(t *testing.T) {
	t.Parallel()
	cluster := testenv.RedisCluster(t)
	client := cluster.Client(t)
	b := newBackend(t, client, keyspace.Sweep(time.Minute))
	used := make(map[string]bool)
	for i := 0; len(used) < len(cluster.Nodes()); i++ {
		name := numbered("q", i)
		master, err := client.MasterForKey(t.Context(), fmt.Sprintf("delayq:{%s}:due", name))
		must(t, err)
		if used[master.Options().Addr] {
			continue
		}
		used[master.Options().Addr] = true
		q := openKnown(t, b, name, silent)
		must(t, degraded(t, b))
		if f := flags(t, master); !strings.Contains(f, "E") || !strings.ContainsAny(f, "xA") {
			t.Errorf("%s notifies of %q", master.Options().Addr, f)
		}
		s := sleep(t, master, q)
		push(t, q, "m", 300*time.Millisecond)
		s.woken(t, "m", time.Second+noise)
	}
	must(t, b.Degraded())
}

// Each master is tried with a key that is its own.
func TestClusterBehindARefusal(t *testing.T) {
	t.Parallel()
	for notify, want := range map[string]int{"Ex": 0, "": 3} {
		cluster := testenv.RedisCluster(t, noConfig, testenv.Directive("notify-keyspace-events", notify))
		b := newBackend(t, cluster.Client(t))
		var log redistest.Log
		q := openKnown(t, b, "q", log.Logger())
		if err := degraded(t, b); (err != nil) != (want > 0) {
			t.Errorf("notify %q: degraded: %v", notify, err)
		}
		n := log.Count("level=WARN", "gets no expiries")
		if want == 0 {
			n -= log.Count(unconfirmed)
		}
		if n != want {
			t.Errorf("notify %q: %d warnings, want %d:\n%s", notify, n, want, &log)
		}
		push(t, q, "m", 300*time.Millisecond)
		take(t, q, redistest.Patience)
	}
}
